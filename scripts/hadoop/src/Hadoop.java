import java.io.File;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.SequenceFile.Reader;
import org.apache.hadoop.io.SequenceFile.Writer;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.util.ReflectionUtils;

/** What the tests ask of a real Hadoop: an HDFS on loopback, and SequenceFiles as its own code writes and reads them. */
public class Hadoop {
    static final String USAGE =
        "dfs BASEDIR DATANODES SECONDS\n"
            + "write-seq FILE COUNT Text|LongWritable Text|BytesWritable none|record|block default|gzip [SYNC-INTERVAL]\n"
            + "read-seq FILE\n"
            + "Several commands, separated by --, are run one after the other: Java takes its time to start.";

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

    static void writeSequenceFile(String[] args) throws Exception {
        Configuration conf = files();
        int count = Integer.parseInt(args[2]);
        Writable key = args[3].equals("LongWritable") ? new LongWritable() : new Text();
        Writable value = args[4].equals("BytesWritable") ? new BytesWritable() : new Text();
        Class<? extends CompressionCodec> kind = args[6].equals("gzip") ? GzipCodec.class : DefaultCodec.class;
        CompressionCodec codec = ReflectionUtils.newInstance(kind, conf);
        int syncInterval = args.length == 8 ? Integer.parseInt(args[7]) : SequenceFile.SYNC_INTERVAL;
        try (Writer writer =
            SequenceFile.createWriter(
                conf,
                Writer.file(new Path(args[1])),
                Writer.keyClass(key.getClass()),
                Writer.valueClass(value.getClass()),
                Writer.compression(CompressionType.valueOf(args[5].toUpperCase()), codec),
                Writer.syncInterval(syncInterval))) {
            for (int i = 0; i < count; i++) {
                if (key instanceof LongWritable) {
                    ((LongWritable) key).set(i);
                } else {
                    ((Text) key).set("key-" + i);
                }
                String sentence = ("第" + i + "条记录").repeat(i % 7 + 1);
                if (value instanceof BytesWritable) {
                    byte[] bytes = sentence.getBytes(StandardCharsets.UTF_8);
                    ((BytesWritable) value).set(bytes, 0, bytes.length);
                } else {
                    ((Text) value).set(sentence);
                }
                writer.append(key, value);
            }
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
        String text = field.toString();
        if (field instanceof BytesWritable) {
            BytesWritable bytes = (BytesWritable) field;
            text = new String(bytes.getBytes(), 0, bytes.getLength(), StandardCharsets.UTF_8);
        }
        return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n");
    }
}
