//! Tests of `pack` and `unpack`: many small files packed into few, and made again of them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::records::sequence;
use crate::servers::hdfs::hadoop_lines;
use crate::stores::Both;
use crate::support::{Folder, Random, Tree, run, sorted};

/// Writes files with unusual names, in UTF-8 without a byte order mark: these come back in any case.
fn write_texts(folder: &Folder, root: &str) -> Tree {
    let long = format!("{}.txt", "长".repeat(83)); // 253 bytes
    let names =
        ["a.txt", "-rf", "no extension", "文/一\n二.html", "文/深/深/\\..\\x", "sp ace/=%2F.txt", &long];
    let mut random = Random(7);
    for (i, name) in names.iter().enumerate() {
        folder.write(&format!("{root}/{name}"), random.text(100 * i) + "\r\n\t end without newline");
    }
    folder.write(&format!("{root}/empty"), "");
    folder.contents(root)
}

/// Writes files that are text in another encoding, and one that is no text.
fn write_others(folder: &Folder, root: &str) {
    let gbk = encoding_rs::GBK.encode("新华社北京电，国家统计局发布数据").0.into_owned();
    folder.write(&format!("{root}/gbk.txt"), gbk);
    folder.write(&format!("{root}/mark.txt"), "\u{feff}有标记");
    folder.write(&format!("{root}/none.bin"), b"\xff\xfe\x00\xff\xff");
}

#[test]
fn bytes_come_back_as_they_were_whatever_they_are() {
    let folder = Folder::new();
    write_texts(&folder, "in");
    write_others(&folder, "in");
    let files = folder.contents("in");
    for (to, extension) in
        [("sequencefile", "seq"), ("sequencefile --codec gzip", "seq"), ("parquet", "parquet")]
    {
        let run = folder.run(&format!("pack in p --to {to} --bytes --overwrite")).ends(0);
        assert!(run.stderr.contains("Files packed=11"), "{}", run.stderr);
        assert!(folder.path(&format!("p/packed/part-00000.{extension}")).exists());
        folder.run("unpack p/packed back --overwrite --quiet").ends(0);
        assert!(folder.contents("back/unpacked") == files, "{to}");
        assert_eq!(folder.counter("p", "input_bytes"), folder.counter("back", "bytes"));
    }
}

#[test]
fn texts_come_back_as_utf_8_without_a_mark_and_what_is_none_is_rejected() {
    let folder = Folder::new();
    let mut files = write_texts(&folder, "in");
    write_others(&folder, "in");
    for to in ["sequencefile", "parquet"] {
        folder.run(&format!("pack in p --to {to} --overwrite --quiet")).ends(3);
        folder.run("unpack p/packed back --overwrite --quiet").ends(0);
        files.insert("gbk.txt".to_owned(), "新华社北京电，国家统计局发布数据".into());
        files.insert("mark.txt".to_owned(), "有标记".into());
        assert!(folder.contents("back/unpacked") == files, "{to}");
        let counted = ["files", "recoded", "rejected"].map(|name| folder.counter("p", name));
        assert_eq!(counted, [10, 2, 1]);
        let rejects = folder.objects("p/rejects", "jsonl");
        assert!(rejects.len() == 1 && rejects[0]["uri"].as_str().unwrap().ends_with("/in/none.bin"));
    }
    assert_eq!(folder.rows("p/packed").len(), 10);
    let of = |name: &str| folder.rows("p/packed").into_iter().find(|row| row[0] == name).unwrap();
    assert_eq!(of("gbk.txt")[1], "新华社北京电，国家统计局发布数据");
}

#[test]
fn the_packed_files_are_the_same_for_any_number_of_workers() {
    let folder = Folder::new();
    let mut random = Random(3);
    for i in 0..300 {
        let size = random.below(if i % 40 == 0 { 30_000 } else { 300 });
        folder.write(&format!("in/{}/{i}.txt", i % 7), random.text(size));
    }
    for i in 0..20 {
        folder.write(&format!("in/{}/{i}-none.txt", i % 7), b"\xff\xff");
    }
    for to in ["sequencefile", "parquet"] {
        let packed = |inputs: &str, workers: usize| {
            let options = format!("--to {to} --part-size 20K --workers {workers} --overwrite --quiet");
            folder.run(&format!("pack {inputs} p {options}")).ends(3);
            let mut output = folder.contents("p");
            output.remove("_SUCCESS");
            output
        };
        let one = packed("in", 1);
        assert!(one.len() > 10);
        for workers in [2, 5] {
            assert!(packed("in", workers) == one, "{to}, {workers} workers");
        }
        folder.run("unpack p/packed back --workers 3 --split-size 1K --overwrite --quiet").ends(0);
        let mut files = folder.contents("in");
        files.retain(|name, _| !name.ends_with("-none.txt"));
        assert!(folder.contents("back/unpacked") == files, "{to}");
    }
    // The packed files are Parquet now, in the order of the paths.
    let names: Vec<String> = folder.rows("p/packed").into_iter().map(|mut row| row.swap_remove(0)).collect();
    assert_eq!(names.len(), 300);
    assert!(names.is_sorted());
}

#[test]
fn a_packed_corpus_is_deduplicated_as_its_files_are() {
    let folder = Folder::new();
    let mut random = Random(5);
    for i in 0..60 {
        let text = random.text(300);
        folder.write(&format!("in/{:02}/a.txt", i), &text);
        if i % 3 == 0 {
            folder.write(&format!("in/{:02}/b.txt", i), format!("{text}完"));
        }
    }
    folder.run("dedup in files --quiet").ends(0);
    for to in ["sequencefile", "parquet"] {
        folder.run(&format!("pack in p --to {to} --overwrite --quiet")).ends(0);
        folder.run("dedup p/packed clean --overwrite --quiet").ends(0);
        folder.run("unpack clean/kept back --overwrite --quiet").ends(0);
        assert!(folder.contents("back/unpacked") == folder.contents("files/kept"), "{to}");
        assert_eq!(folder.counter("clean", "removed"), 20);
    }
}

#[test]
fn names_that_lead_elsewhere_are_rejected_and_nothing_is_written_there() {
    let folder = Folder::new();
    let outside = folder.path("outside").to_str().unwrap().to_owned();
    // These names lead from out/_temporary/RUN/parts/unpacked, where files are written first, or from
    // out/unpacked to this folder.
    let wrong = [
        "../../../../../outside",
        outside.as_str(),
        "a/../../../../../../outside",
        "../../outside",
        "..",
        "",
        "a//b",
        "./a",
        &"长".repeat(90),
        "zero\0byte",
    ];
    let record = |name: &&str| ((*name).to_owned(), "text".to_owned());
    let mut records: Vec<_> = wrong.iter().map(record).collect();
    records.push(record(&"good"));
    folder.write("in.seq", sequence::written(&records, 3));
    folder.run("unpack in.seq back --quiet").ends(3);
    assert_eq!(folder.contents("back/unpacked"), Tree::from([("good".to_owned(), b"text".to_vec())]));
    assert!(!folder.path("outside").exists());
    let rejects = folder.objects("back/rejects", "jsonl");
    assert_eq!(rejects.len(), wrong.len());
    for reject in &rejects {
        assert!(reject["reason"].as_str().unwrap().starts_with("the name "), "{reject}");
        assert!(
            reject["offset"].as_u64().unwrap() > 0 && reject["uri"].as_str().unwrap().ends_with("/in.seq")
        );
    }
}

#[test]
fn a_name_of_255_bytes_that_are_no_text_comes_back() {
    let folder = Folder::new();
    let name = OsStr::from_bytes(&[0xE9; 255]);
    folder.write("in/other", "another");
    fs::write(folder.path("in").join(name), "text").unwrap();
    for to in ["sequencefile", "parquet"] {
        folder.run(&format!("pack in p --to {to} --overwrite --quiet")).ends(0);
        folder.run("unpack p/packed back --overwrite --quiet").ends(0);
        assert_eq!(fs::read(folder.path("back/unpacked").join(name)).unwrap(), b"text", "{to}");
    }
}

#[test]
fn files_of_one_name_in_two_folders_that_lie_above_are_told_apart() {
    let folder = Folder::new();
    folder.write("a/x.txt", "1");
    folder.write("b/x.txt", "2");
    fs::create_dir(folder.path("work")).unwrap();
    for line in ["pack ../a ../b out --quiet", "unpack out/packed back --quiet"] {
        run(folder.command(line).current_dir(folder.path("work"))).ends(0);
    }
    let back = folder.contents("work/back/unpacked");
    assert_eq!(back.into_values().collect::<Vec<_>>(), [b"1", b"2"]);
}

#[test]
fn two_files_of_one_name_are_an_error_that_names_it() {
    let folder = Folder::new();
    for names in [["same", "same"], ["a/b", "a"], ["a", "a/b"]] {
        let records = names.map(|name| (name.to_owned(), "x".to_owned()));
        folder.write("in.seq", sequence::written(&records, 1));
        folder.run("unpack in.seq back").fails(2, &[&format!("{:?}", names[1]), "in.seq"]);
        assert!(!folder.path("back/unpacked").exists() && !folder.path("back/_SUCCESS").exists());
        assert!(!folder.path("back/_temporary").exists());
    }
    // Files of two inputs are told apart by their paths.
    folder.write("one/x.txt", "1");
    folder.write("two/x.txt", "2");
    folder.run("pack one two p --quiet").ends(0);
    folder.run("unpack p/packed back --quiet").ends(0);
    assert_eq!(folder.contents("back/unpacked").into_values().collect::<Vec<_>>(), [b"1", b"2"]);
}

#[test]
fn a_damaged_packed_file_loses_what_is_damaged_and_no_more() {
    let folder = Folder::new();
    let mut random = Random(9);
    for i in 0..500 {
        folder.write(&format!("in/{i:03}.txt"), random.text(3_000));
    }
    folder.run("pack in p --quiet").ends(0);
    let part = folder.path("p/packed/part-00000.seq");
    let mut bytes = fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(&part, bytes).unwrap();
    folder.run("unpack p/packed back --quiet").ends(3);
    assert_eq!(folder.counter("back", "rejected"), 1);
    let (files, back) = (folder.contents("in"), folder.contents("back/unpacked"));
    // A block is a megabyte, which is about 111 of these files.
    assert!((350..450).contains(&back.len()), "{}", back.len());
    assert!(back.iter().all(|(name, bytes)| files[name] == *bytes));
}

#[test]
fn wrong_use_and_guards_leave_nothing() {
    let folder = Folder::new();
    write_texts(&folder, "in");
    write_others(&folder, "in");
    folder.run("pack in p --to parquet --codec gzip").fails(2, &["--codec", "Parquet"]);
    folder.run("pack in p --bytes --encoding gbk").ends(2);
    folder.run("pack in").fails(2, &["<OUTPUT>"]);
    folder.run("pack none p").fails(2, &["none", "does not exist"]);
    folder.run("pack in p --max-rejects 0").fails(4, &["--max-rejects 0", "none.bin"]);
    folder.run("pack in/empty in --overwrite").fails(2, &["/in/empty", "lies in"]);
    assert!(!folder.path("p/packed").exists() && !folder.path("p/_SUCCESS").exists());
    folder.run("pack in p --max-record-bytes 100 --quiet").ends(3);
    let long = folder.contents("in").values().filter(|bytes| bytes.len() > 100).count() as u64;
    assert!(long > 0 && folder.lines("p/rejects", "jsonl").concat().contains("longer than 100 bytes"));
    // The file that is no text is rejected too.
    assert_eq!(folder.counter("p", "rejected"), long + 1);
    folder.run("pack in p").fails(2, &["exists", "--overwrite"]);
    folder.write("lines.jsonl", "{\"id\":\"a\",\"text\":\"b\"}\n");
    folder.run("unpack lines.jsonl back").fails(2, &["jsonl", "parquet"]);
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn files_are_packed_and_unpacked_on_hdfs_and_read_by_hadoop() {
    let both = Both::hdfs("/pack", Folder::new());
    let folder = &both.here;
    let texts = write_texts(folder, "in");
    folder.write("in/colon:name", "no such name is possible on HDFS");
    let run = |line: &str| both.run(line);

    run("pack in @/p --workers 2 --quiet").ends(0);
    run("pack in p --quiet").ends(0);
    let there = both.read(&both.path("p/packed/part-00000.seq")).unwrap();
    assert!(there == folder.bytes("p/packed", ".seq"), "what is packed depends on where it lies");
    let read = hadoop_lines(&[vec!["read-seq".to_owned(), format!("{}/p/packed/part-00000.seq", both.uri)]]);
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n");
    let lines: Vec<String> = folder
        .contents("in")
        .iter()
        .map(|(name, bytes)| format!("{}\t{}", escaped(name), escaped(std::str::from_utf8(bytes).unwrap())))
        .collect();
    assert_eq!(sorted(read), sorted(lines));

    run("unpack @/p/packed @/back --workers 4 --quiet").ends(3);
    assert!(both.output_there("back/unpacked").keys().eq(texts.keys()));
    // The files on HDFS are packed, and come back to this machine.
    run("pack @/back/unpacked again --quiet").ends(0);
    run("unpack again/packed here --quiet").ends(0);
    assert!(folder.contents("here/unpacked") == texts);
    run("unpack @/back/rejects nowhere").fails(2, &["jsonl"]);
}

#[test]
fn a_corpus_with_records_is_packed_document_by_document() {
    let here = crate::corpus::demo(600, 4);
    for to in ["sequencefile", "parquet"] {
        let run =
            here.run(&format!("pack demo/corpus.jsonl p --to {to} --overwrite --part-size 64K")).ends(0);
        assert!(run.stderr.contains("Documents packed=600"), "{}", run.stderr);
        for (input, output) in [("demo/corpus.jsonl", "a"), ("p/packed", "b")] {
            here.run(&format!("dedup {input} {output} --method jaccard:0.8 --overwrite --quiet")).ends(0);
        }
        assert_eq!(sorted(here.rows("a/clusters")).len(), sorted(here.rows("b/clusters")).len(), "{to}");
        assert_eq!(here.counter("a", "removed"), here.counter("b", "removed"));
    }
    let doc = |n: u32| {
        format!(
            "<doc>\n<url>http://example.org/{n}</url>\n<docno>{n}</docno>\n<contenttitle>题</contenttitle>\n<content>第{n}篇的正文</content>\n</doc>\n"
        )
    };
    here.write("news/a.dat", encoding_rs::GB18030.encode(&(0..3).map(doc).collect::<String>()).0);
    let run = here.run("pack news q").ends(0);
    assert!(run.stderr.contains("Documents packed=3"), "{}", run.stderr);
    // Beside a file that is a document by itself, each file is a record, and the user is told so.
    here.write("news/0.txt", "一篇文章");
    let run = here.run("pack news q --overwrite").ends(0);
    assert!(
        run.stderr.contains("Files packed=2") && run.stderr.contains("a.dat\" has records of its own"),
        "{}",
        run.stderr
    );
    let run = here.run("pack news q --overwrite --records document").ends(0);
    assert!(run.stderr.contains("Documents packed=4"), "{}", run.stderr);
    here.run("pack demo/corpus.jsonl q --overwrite --text-field nothing").fails(2, &["no field"]);
}
