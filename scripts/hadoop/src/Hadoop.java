import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
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
import org.apache.hadoop.util.ReflectionUtils;

/** What the tests ask of a real Hadoop: an HDFS on loopback, and SequenceFiles as its own code writes and reads them. */
public class Hadoop {
    static final String USAGE =
        "dfs BASEDIR DATANODES SECONDS [ha] [ec]\n"
            + "write-seq FILE COUNT KEY VALUE none|record|block default|gzip|bzip2|snappy|lz4 [SYNC-INTERVAL]\n"
            + "    KEY, VALUE: Text, BytesWritable, LongWritable, IntWritable or NullWritable\n"
            + "copy-seq FILE COPY none|record|block default|gzip|bzip2|snappy|lz4\n"
            + "read-seq FILE\n"
            + "time-seq FILE TIMES\n"
            + "Several commands, separated by --, are run one after the other: Java takes its time to start.";

    static final Map<String, Class<? extends CompressionCodec>> CODECS =
        Map.of(
            "default", DefaultCodec.class,
            "gzip", GzipCodec.class,
            "bzip2", BZip2Codec.class,
            "snappy", SnappyCodec.class,
            "lz4", Lz4Codec.class);

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
        if (command.equals("dfs") && args.length >= 4) {
            Set<String> flags = new HashSet<>(Arrays.asList(args).subList(4, args.length));
            serve(new File(args[1]), Integer.parseInt(args[2]), Long.parseLong(args[3]), flags, out);
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
        Deque<Socket> kept = new ArrayDeque<>();
        try {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                if (words[0].equals("stop")) { // the data node of that place in the list
                    DataNode node = cluster.getDataNodes().get(Integer.parseInt(words[1]));
                    int[] ports = {node.getXferPort(), node.getIpcPort()};
                    stopped.push(cluster.stopDataNode(Integer.parseInt(words[1])));
                    for (int port : ports) {
                        kept.push(keepPort(port));
                    }
                } else if (words[0].equals("restart")) { // those that were stopped, on their old ports
                    while (!kept.isEmpty()) {
                        kept.pop().close();
                    }
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

    /**
     * A socket that has a port of a stopped data node, so that no connection of others gets it from the system before
     * the data node is back. It does not listen: connections to it are refused, as they are without it.
     */
    static Socket keepPort(int port) throws IOException {
        Socket socket = new Socket();
        socket.setReuseAddress(true);
        socket.bind(new InetSocketAddress("127.0.0.1", port));
        return socket;
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
