import java.io.File;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.SequenceFile.Reader;
import org.apache.hadoop.io.SequenceFile.Writer;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.compress.BZip2Codec;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.io.compress.Lz4Codec;
import org.apache.hadoop.io.compress.SnappyCodec;
import org.apache.hadoop.io.compress.ZStandardCodec;
import org.apache.hadoop.util.ReflectionUtils;

/** What the tests ask of a real Hadoop: an HDFS on loopback, and SequenceFiles as its own code writes and reads them. */
public class Hadoop {
    static final String USAGE =
        "dfs BASEDIR DATANODES SECONDS\n"
            + "write-seq FILE COUNT KEY VALUE none|record|block default|gzip|bzip2|snappy|lz4|zstd [SYNC-INTERVAL]\n"
            + "    KEY, VALUE: Text, BytesWritable, LongWritable, IntWritable or NullWritable\n"
            + "copy-seq FILE COPY none|record|block default|gzip|bzip2|snappy|lz4|zstd\n"
            + "read-seq FILE\n"
            + "time-seq FILE TIMES\n"
            + "Several commands, separated by --, are run one after the other: Java takes its time to start.";

    static final Map<String, Class<? extends CompressionCodec>> CODECS =
        Map.of(
            "default", DefaultCodec.class,
            "gzip", GzipCodec.class,
            "bzip2", BZip2Codec.class,
            "snappy", SnappyCodec.class,
            "lz4", Lz4Codec.class,
            "zstd", ZStandardCodec.class);

    static final Map<String, Supplier<Writable>> CLASSES =
        Map.of(
            "Text", Text::new,
            "BytesWritable", BytesWritable::new,
            "LongWritable", LongWritable::new,
            "IntWritable", IntWritable::new,
            "NullWritable", NullWritable::get);

    public static void main(String[] args) throws Exception {
        // Hadoop may print what it likes, but standard output is for the answer.
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        int start = 0;
        for (int end = 0; end <= args.length; end++) {
            if (end == args.length || args[end].equals("--")) {
                run(Arrays.copyOfRange(args, start, end), out);
                start = end + 1;
            }
        }
        out.flush();
        System.exit(0); // Hadoop leaves threads behind
    }

    static void run(String[] args, PrintStream out) throws Exception {
        String command = args.length == 0 ? "" : args[0];
        if (command.equals("dfs") && args.length == 4) {
            serve(new File(args[1]), Integer.parseInt(args[2]), Long.parseLong(args[3]), out);
        } else if (command.equals("write-seq") && (args.length == 7 || args.length == 8)) {
            writeSequenceFile(args);
        } else if (command.equals("read-seq") && args.length == 2) {
            readSequenceFile(args[1], out);
        } else if (command.equals("copy-seq") && args.length == 5) {
            copySequenceFile(args);
        } else if (command.equals("time-seq") && args.length == 3) {
            timeSequenceFile(args[1], Integer.parseInt(args[2]), out);
        } else {
            System.err.println(USAGE);
            System.exit(2);
        }
    }

    /** Serves until standard input closes or the time is up. The user of this process is the superuser. */
    static void serve(File base, int dataNodes, long seconds, PrintStream out) throws Exception {
        Configuration conf = new Configuration();
        conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, base.getAbsolutePath());
        conf.setInt("dfs.replication", dataNodes);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(dataNodes).build();
        try {
            cluster.waitActive();
            cluster.getFileSystem().setPermission(new Path("/"), new FsPermission((short) 0777));
            out.print("ready hdfs://127.0.0.1:" + cluster.getNameNodePort() + "\n");
            out.flush();
            Thread input = new Thread(Hadoop::awaitEnd);
            input.setDaemon(true);
            input.start();
            input.join(seconds * 1000);
        } finally {
            cluster.shutdown(true);
            FileUtil.fullyDelete(base);
        }
    }

    static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {}
        } catch (java.io.IOException closed) {
            // It ended all the same.
        }
    }

    /** Local files without the checksum files that Hadoop would put beside them. */
    static Configuration files() {
        Configuration conf = new Configuration();
        conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
        return conf;
    }

    static Writer writer(Configuration conf, String file, Writable key, Writable value, String style, String codec,
        int syncInterval) throws Exception {
        CompressionCodec instance = ReflectionUtils.newInstance(CODECS.get(codec), conf);
        return SequenceFile.createWriter(
            conf,
            Writer.file(new Path(file)),
            Writer.keyClass(key.getClass()),
            Writer.valueClass(value.getClass()),
            Writer.compression(CompressionType.valueOf(style.toUpperCase()), instance),
            Writer.syncInterval(syncInterval));
    }

    /** Record number i has the key "key-i" or i, and a sentence that says i and has i % 7 repetitions, or i. */
    static void writeSequenceFile(String[] args) throws Exception {
        Configuration conf = files();
        int count = Integer.parseInt(args[2]);
        Writable key = CLASSES.get(args[3]).get();
        Writable value = CLASSES.get(args[4]).get();
        int syncInterval = args.length == 8 ? Integer.parseInt(args[7]) : SequenceFile.SYNC_INTERVAL;
        try (Writer writer = writer(conf, args[1], key, value, args[5], args[6], syncInterval)) {
            for (int i = 0; i < count; i++) {
                set(key, i, "key-" + i);
                set(value, i, ("第" + i + "条记录").repeat(i % 7 + 1));
                writer.append(key, value);
            }
        }
    }

    static void set(Writable field, int number, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        if (field instanceof Text) {
            ((Text) field).set(text);
        } else if (field instanceof BytesWritable) {
            ((BytesWritable) field).set(bytes, 0, bytes.length);
        } else if (field instanceof LongWritable) {
            ((LongWritable) field).set(number);
        } else if (field instanceof IntWritable) {
            ((IntWritable) field).set(number);
        }
    }

    static void copySequenceFile(String[] args) throws Exception {
        Configuration conf = files();
        try (Reader reader = new Reader(conf, Reader.file(new Path(args[1])))) {
            Writable key = (Writable) ReflectionUtils.newInstance(reader.getKeyClass(), conf);
            Writable value = (Writable) ReflectionUtils.newInstance(reader.getValueClass(), conf);
            try (Writer writer = writer(conf, args[2], key, value, args[3], args[4], SequenceFile.SYNC_INTERVAL)) {
                while (reader.next(key, value)) {
                    writer.append(key, value);
                }
            }
        }
    }

    /** Reads all records again and again; the CPU seconds of this thread for each time, without Java's start. */
    static void timeSequenceFile(String file, int times, PrintStream out) throws Exception {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        Configuration conf = files();
        for (int time = 0; time < times; time++) {
            long before = threads.getCurrentThreadCpuTime();
            long records = 0;
            long bytes = 0;
            try (Reader reader = new Reader(conf, Reader.file(new Path(file)))) {
                Writable key = (Writable) ReflectionUtils.newInstance(reader.getKeyClass(), conf);
                Text value = new Text();
                while (reader.next(key, value)) {
                    records++;
                    bytes += value.getLength();
                }
            }
            double seconds = (threads.getCurrentThreadCpuTime() - before) / 1e9;
            out.printf("%d records, %d bytes of text, %.2f s, %.0f MB/s%n", records, bytes, seconds, bytes / 1e6 / seconds);
            out.flush();
        }
    }

    static void readSequenceFile(String file, PrintStream out) throws Exception {
        Configuration conf = files();
        try (Reader reader = new Reader(conf, Reader.file(new Path(file)))) {
            Writable key = (Writable) ReflectionUtils.newInstance(reader.getKeyClass(), conf);
            Writable value = (Writable) ReflectionUtils.newInstance(reader.getValueClass(), conf);
            while (reader.next(key, value)) {
                out.print(text(key) + "\t" + text(value) + "\n");
            }
        }
    }

    static String text(Writable field) {
        String text = field instanceof NullWritable ? "" : field.toString();
        if (field instanceof BytesWritable) {
            BytesWritable bytes = (BytesWritable) field;
            text = new String(bytes.getBytes(), 0, bytes.getLength(), StandardCharsets.UTF_8);
        }
        return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n");
    }
}
