import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.ha.HATestUtil;
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
        "dfs BASEDIR DATANODES SECONDS [ha] [ec]\n"
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
        if (command.equals("dfs") && args.length >= 4) {
            Set<String> flags = new HashSet<>(Arrays.asList(args).subList(4, args.length));
            serve(new File(args[1]), Integer.parseInt(args[2]), Long.parseLong(args[3]), flags, out);
        } else if (command.equals("write-seq") && (args.length == 7 || args.length == 8)) {
            writeSequenceFile(args);
        } else if (command.equals("read-seq") && args.length == 2) {
            readSequenceFile(args[1], out);
        } else {
            System.err.println(USAGE);
            System.exit(2);
        }
    }

    /**
     * Serves until standard input closes or the time is up. The user of this process is the superuser.
     *
     * <p>ha: two name nodes behind the name service minidfs-ns. ec: the folder /ec has erasure coding, RS-3-2, which
     * needs five data nodes. A line on standard output says that all is ready: the URI and the ports of the data
     * nodes; BASEDIR/conf has what a client must know.
     */
    static void serve(File base, int dataNodes, long seconds, Set<String> flags, PrintStream out) throws Exception {
        Configuration conf = new Configuration();
        conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, base.getAbsolutePath());
        conf.setInt("dfs.replication", Math.min(dataNodes, 3));
        boolean ha = flags.contains("ha");
        MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(conf).numDataNodes(dataNodes);
        MiniDFSCluster cluster = (ha ? builder.nnTopology(MiniDFSNNTopology.simpleHATopology(2)) : builder).build();
        try {
            Configuration client = new Configuration(false);
            String uri = "hdfs://minidfs-ns";
            if (ha) {
                cluster.transitionToActive(0);
                HATestUtil.setFailoverConfigurations(cluster, client, "minidfs-ns");
                for (int node = 0; node < 2; node++) { // as people write it, without a scheme
                    String address = "127.0.0.1:" + cluster.getNameNodePort(node);
                    client.set("dfs.namenode.rpc-address.minidfs-ns.nn" + (node + 1), address);
                }
            } else {
                uri = "hdfs://127.0.0.1:" + cluster.getNameNodePort();
                client.set("fs.defaultFS", uri);
            }
            cluster.waitActive();
            DistributedFileSystem files = cluster.getFileSystem(0);
            files.setPermission(new Path("/"), new FsPermission((short) 0777));
            if (flags.contains("ec")) {
                Path folder = new Path("/ec");
                files.enableErasureCodingPolicy("RS-3-2-1024k");
                files.mkdirs(folder);
                files.setErasureCodingPolicy(folder, "RS-3-2-1024k");
                files.setPermission(folder, new FsPermission((short) 0777));
            }
            File settings = new File(base, "conf/core-site.xml");
            settings.getParentFile().mkdirs();
            try (FileOutputStream file = new FileOutputStream(settings)) {
                client.writeXml(file);
            }
            StringBuilder line = new StringBuilder("ready " + uri);
            for (DataNode node : cluster.getDataNodes()) {
                line.append(' ').append(node.getXferPort());
            }
            say(out, line.toString());
            Thread input = new Thread(() -> obey(cluster, out));
            input.setDaemon(true);
            input.start();
            input.join(seconds * 1000);
        } finally {
            cluster.shutdown(true);
            FileUtil.fullyDelete(base);
        }
    }

    static void say(PrintStream out, String line) {
        out.print(line + "\n");
        out.flush();
    }

    /** Does what the lines of standard input say, up to its end, and answers each with a line. */
    static void obey(MiniDFSCluster cluster, PrintStream out) {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Deque<MiniDFSCluster.DataNodeProperties> stopped = new ArrayDeque<>();
        try {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                if (words[0].equals("stop")) { // the data node of that place in the list
                    stopped.push(cluster.stopDataNode(Integer.parseInt(words[1])));
                } else if (words[0].equals("restart")) { // those that were stopped, on their old ports
                    while (!stopped.isEmpty()) {
                        cluster.restartDataNode(stopped.pop(), true);
                    }
                    cluster.waitActive();
                } else if (words[0].equals("active")) { // the name node of that number, and the other one stands by
                    int node = Integer.parseInt(words[1]);
                    cluster.transitionToStandby(1 - node);
                    cluster.transitionToActive(node);
                } else {
                    throw new IllegalArgumentException(line);
                }
                say(out, "done " + line);
            }
        } catch (Exception failure) {
            // Our end follows, and the caller waits for an answer in vain.
            failure.printStackTrace();
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
