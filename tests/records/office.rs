//! Tests of Word and PDF documents, which are read by restricted child processes. These processes can do nothing else, and a document
//! that kills one of them costs only itself.

use std::fs;
use std::io::{Cursor, Read, Write};
use std::process::{Command, Stdio};

use flate2::write::ZlibEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::{Folder, Random, Running};

/// Returns a Word document with one paragraph for each text.
fn docx(paragraphs: &[&str]) -> Vec<u8> {
    let body: String =
        paragraphs.iter().map(|text| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")).collect();
    let name = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let xml = format!("<w:document xmlns:w=\"{name}\"><w:body>{body}</w:body></w:document>");
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("word/document.xml", SimpleFileOptions::default()).unwrap();
    archive.write_all(xml.as_bytes()).unwrap();
    archive.finish().unwrap().into_inner()
}

/// Returns a PDF of one page. The instructions of the page are object 4, and `more` objects come after it.
fn pdf(instructions: &[u8], more: &[Vec<u8>]) -> Vec<u8> {
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>\
          /Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
            .to_vec(),
        stream("", instructions),
    ];
    objects.extend_from_slice(more);
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (object, number) in objects.iter().zip(1..) {
        table += &format!("{:010} 00000 n \n", bytes.len());
        bytes.extend([format!("{number} 0 obj").as_bytes(), object, b"\nendobj\n"].concat());
    }
    let start = bytes.len();
    table += &format!("trailer<</Size {}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1);
    [bytes, table.into_bytes()].concat()
}

fn stream(entries: &str, bytes: &[u8]) -> Vec<u8> {
    [format!("<<{entries}/Length {}>>stream\n", bytes.len()).as_bytes(), bytes, b"\nendstream"].concat()
}

fn page_of(text: &str) -> Vec<u8> {
    pdf(format!("BT /F 12 Tf 50 800 Td ({text}) Tj ET").as_bytes(), &[])
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::new(1));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns half a gigabyte of instructions in some hundred bytes.
fn memory_bomb() -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::new(1));
    (0..512).for_each(|_| encoder.write_all(&[b' '; 1 << 20]).unwrap());
    let instructions = stream("/Filter[/FlateDecode/FlateDecode]", &deflated(&encoder.finish().unwrap()));
    let mut file = pdf(b"", &[instructions]);
    let at = file.windows(14).position(|bytes| bytes == b"/Contents 4 0 ").unwrap();
    file[at + 10] = b'5';
    file
}

/// Returns a drawing that draws another one ten times, which draws another one ten times, and so on, up to
/// 1,000,000,000 times.
fn time_bomb() -> Vec<u8> {
    let draw = b"/X Do ".repeat(10);
    let forms: Vec<_> = (6..15)
        .map(|next| {
            stream(
                &format!("/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X {next} 0 R>>>>"),
                &draw,
            )
        })
        .chain([stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]", b"q Q")])
        .collect();
    pdf(&draw, &forms)
}

/// Process of the program that reads documents of up to `max_bytes`. It ends when this is dropped.
struct Extractor(Running);

impl Extractor {
    fn start(max_bytes: usize) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dedup-job"));
        command.args(["__extract", &max_bytes.to_string(), &(6 * max_bytes).to_string(), "10"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut extractor = Extractor(Running(child));
        assert_eq!(extractor.read(6), b"ready\n");
        extractor
    }

    fn read(&mut self, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        self.0.0.stdout.as_mut().unwrap().read_exact(&mut read).unwrap();
        read
    }

    fn extract(&mut self, document: &[u8]) -> (u8, String) {
        let stdin = self.0.0.stdin.as_mut().unwrap();
        stdin.write_all(&[0]).unwrap(); // the task: text
        stdin.write_all(&(document.len() as u64).to_le_bytes()).unwrap();
        stdin.write_all(document).unwrap();
        let sort = self.read(1)[0];
        let length = u64::from_le_bytes(self.read(8).try_into().unwrap());
        (sort, String::from_utf8(self.read(length as usize)).unwrap())
    }

    fn proc(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.0.0.id())).unwrap()
    }
}

#[test]
fn an_extractor_may_only_think_and_answer() {
    let answer = |sort, text: &str| (sort, text.to_owned());
    for (document, answer) in [
        (docx(&["新华社", "a"]), answer(1, "新华社\na\n")),
        (page_of("hello dev"), answer(1, "hello dev\n")),
        (b"".to_vec(), answer(0, "neither a Word document nor a PDF")),
    ] {
        let mut extractor = Extractor::start(64 << 20);
        let status = extractor.proc("status");
        for line in ["Seccomp:\t2\n", "NoNewPrivs:\t1\n", "Threads:\t1\n"] {
            assert!(status.contains(line), "{line:?} is not in {status}");
        }
        let limits = extractor.proc("limits");
        for (name, soft) in [
            ("Max open files", "0"),
            ("Max file size", "0"),
            ("Max core file size", "0"),
            ("Max data size", "402653184"),
            ("Max stack size", "8388608"),
        ] {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            assert_eq!(line.split_whitespace().next(), Some(soft), "{name}");
        }
        let cpu = limits.lines().find_map(|line| line.strip_prefix("Max cpu time")).unwrap();
        let seconds: u64 = cpu.split_whitespace().next().unwrap().parse().unwrap();
        assert!((11..30).contains(&seconds), "{seconds} s of CPU time");
        assert_eq!(extractor.extract(&document), answer);
        // The process reads no other document.
        assert!(extractor.0.0.wait().unwrap().success());
    }
}

#[test]
fn a_document_that_kills_its_reader_costs_itself() {
    let folder = Folder::new();
    folder.write("in/1.docx", docx(&["国家统计局十九日发布数据"]));
    folder.write("in/2.memory.pdf", memory_bomb());
    folder.write("in/3.pdf", page_of("the same words in both of these files"));
    folder.write("in/5.docx", docx(&["the same words in both of these files"]));
    folder.write("in/6.txt", "the same words in both of these files\n");
    folder.write("in/7.docx", docx(&["<w:p>".repeat(9_000).as_str()]));
    // A parser of pages takes the square of the depth of their elements.
    folder.write("in/9.html", ["<html><body>", &"<div>".repeat(200_000), "text"].concat());
    // The document is in a split of its own, after a file of another format, so that it is read once.
    folder.write("in/8.time.pdf", time_bomb());
    let run = folder.run("dedup --workers 1 --method exact --max-record-bytes 8M in out").ends(3);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    let rejects: Vec<_> = folder.objects("out/rejects", "jsonl");
    let reason = |file: &str| {
        let of = |reject: &&serde_json::Value| reject["uri"].as_str().unwrap().ends_with(file);
        rejects.iter().find(of).unwrap_or_else(|| panic!("{file} is not rejected"))["reason"].to_string()
    };
    assert!(reason("2.memory.pdf").contains("more than 134217728 bytes of memory"), "{rejects:?}");
    assert!(reason("8.time.pdf").contains("more than 10 s of CPU time"), "{rejects:?}");
    assert!(reason("7.docx").contains("nested more than 1000 deep"), "{rejects:?}");
    assert!(reason("9.html").contains("more than"), "{rejects:?}");
    assert_eq!(rejects.len(), 4);
    // Kept and removed are the files themselves.
    let files = |part: &str| {
        let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let files = folder.files(part).into_iter().filter(|path| !path.to_str().unwrap().ends_with("jsonl"));
        files.map(|path| (name(&path), fs::read(&path).unwrap())).collect::<Vec<_>>()
    };
    let written = |names: &[&str]| -> Vec<_> {
        names.iter().map(|name| (name.to_string(), fs::read(folder.path("in").join(name)).unwrap())).collect()
    };
    assert_eq!(files("out/kept"), written(&["1.docx", "3.pdf"]));
    assert_eq!(files("out/removed"), written(&["5.docx", "6.txt"]));
}

#[test]
fn pages_and_markdown_are_documents_that_are_copied_whole() {
    let folder = Folder::new();
    let page = |charset: &str, text: &str| {
        format!("<!DOCTYPE html><meta charset={charset}><script>x()</script><p>{text}</p>")
    };
    let text = "国家统计局十九日发布数据，前三季度国内生产总值同比增长。";
    folder.write("in/1.html", page("utf-8", text));
    folder.write("in/2.htm", encoding_rs::GBK.encode(&page("gb2312", text)).0);
    folder.write("in/3.md", format!("# {}\n", Random(5).text(40)));
    folder.write("in/4.docx", page("utf-8", text));
    let run = folder.run("dedup in out --quiet").ends(3);
    assert!(run.stderr.contains("1 rejected"), "{}", run.stderr);
    assert!(folder.objects("out/rejects", "jsonl")[0]["uri"].as_str().unwrap().ends_with("4.docx"));
    let same = |one: &str, other: &str| {
        assert_eq!(fs::read(folder.path(one)).unwrap(), fs::read(folder.path(other)).unwrap());
    };
    same("in/1.html", "out/kept/1.html");
    same("in/2.htm", "out/removed/2.htm");
    same("in/3.md", "out/kept/3.md");
}

#[test]
fn no_mutant_of_a_document_is_more_than_one_record_or_ends_the_job() {
    let folder = Folder::new();
    let mut random = Random(20);
    let text = random.text(60);
    for (kind, bytes) in [("docx", docx(&[&text, "b"])), ("pdf", page_of("hello dev, this is a page"))] {
        for number in 0..2_000 {
            let mut mutant = bytes.clone();
            let at = random.below(bytes.len());
            match number % 8 {
                0 => mutant.truncate(at),
                _ => mutant[at] ^= 1 + random.below(255) as u8,
            }
            folder.write(&format!("in/{number:04}.{kind}"), mutant);
        }
    }
    let run = folder.run("dedup --workers 2 --method exact --resolve components --quiet in out").ends(3);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    let [kept, removed, rejected] = ["kept", "removed", "rejected"].map(|name| folder.counter("out", name));
    assert_eq!(kept + removed + rejected, 4_000);
    // The checksum finds a changed byte of the body, so of all mutated Word documents that can be read, one
    // is kept.
    let documents = folder.files("out/kept").into_iter().filter(|path| path.extension().unwrap() == "docx");
    assert_eq!(documents.count(), 1);
    assert!(removed > 500, "{removed} mutants were read");
    for reject in folder.objects("out/rejects", "jsonl") {
        let reason = reject["reason"].as_str().unwrap();
        assert!(!reason.contains("gave up") && !reason.contains("the extractor"), "{reject}");
    }
}
