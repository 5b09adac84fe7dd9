import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HBaseTestingUtility;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.MiniHBaseCluster;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.StartMiniClusterOption;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.thrift2.ThriftServer;
import org.apache.log4j.Level;
import org.apache.log4j.LogManager;

/** A real HBase on loopback for the tests: HDFS, ZooKeeper, a master, region servers and a Thrift2 gateway. */
public class HBase {
    static final String USAGE =
        "BASEDIR SERVERS SECONDS IDLE-MS [NAME=VALUE]...\n"
            + "IDLE-MS: the gateway drops a connection on which nothing has come for so long.\n"
            + "NAME=VALUE: settings of HBase\n"
            + "Prints ready, and the ports of the gateway and of ZooKeeper. Obeys lines of standard input:\n"
            + "kill TABLE    ends the region server that has the first region of a table, without any farewell\n"
            + "root          prints root, and the address of HBase's folder in HDFS";

    public static void main(String[] args) throws Exception {
        // HBase may print what it likes, but standard output is for the answers.
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        LogManager.getRootLogger().setLevel(Level.ERROR);
        // These write a line for each request, whatever the level of the root is.
        for (String of : new String[] {"namenode.FSNamesystem.audit", "datanode.DataNode.clienttrace"}) {
            LogManager.getLogger("org.apache.hadoop.hdfs.server." + of).setLevel(Level.ERROR);
        }
        if (args.length < 4) {
            System.err.println(USAGE);
            System.exit(2);
        }
        List<String> settings = Arrays.asList(args).subList(4, args.length);
        serve(new File(args[0]), Integer.parseInt(args[1]), Long.parseLong(args[2]), args[3], settings, out);
        System.exit(0); // HBase leaves threads behind
    }

    /** Serves until standard input closes or the time is up. */
    static void serve(
            File base, int servers, long seconds, String idleMs, List<String> settings, PrintStream out)
            throws Exception {
        System.setProperty("test.build.data.basedirectory", base.getAbsolutePath());
        System.setProperty("hbase.tmp.dir", base.getAbsolutePath());
        Configuration conf = HBaseConfiguration.create();
        for (String page : new String[] {"hbase.master", "hbase.regionserver", "hbase.thrift"}) {
            conf.setInt(page + ".info.port", -1);
        }
        // A region server that was killed is noticed by its session with ZooKeeper.
        conf.setInt(HConstants.ZK_SESSION_TIMEOUT, 5000);
        conf.setInt("hbase.regionserver.handler.count", 12);
        // Each region that is written to would reserve 2 MB, and a table has 64 of them.
        conf.setBoolean("hbase.hregion.memstore.mslab.enabled", false);
        for (String host : new String[] {"hbase.master", "hbase.regionserver"}) {
            conf.set(host + ".ipc.address", "127.0.0.1");
            conf.set(host + ".hostname", "localhost");
        }
        for (String setting : settings) {
            String[] parts = setting.split("=", 2);
            conf.set(parts[0], parts[1]);
        }
        HBaseTestingUtility utility = new HBaseTestingUtility(conf);
        StartMiniClusterOption option =
            StartMiniClusterOption.builder().numRegionServers(servers).numDataNodes(1).build();
        MiniHBaseCluster cluster = utility.startMiniCluster(option);
        try {
            int port = freePort();
            Configuration gateway = new Configuration(utility.getConfiguration());
            gateway.set("hbase.thrift.server.socket.read.timeout", idleMs);
            Thread thrift = new Thread(() -> runGateway(gateway, port));
            thrift.setDaemon(true);
            thrift.start();
            awaitServer(port);
            out.println("ready " + port + " " + utility.getZkCluster().getClientPort());
            out.flush();
            Thread input = new Thread(() -> obey(cluster, out));
            input.setDaemon(true);
            input.start();
            input.join(seconds * 1000);
        } finally {
            utility.shutdownMiniCluster();
        }
    }

    static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return socket.getLocalPort();
        }
    }

    static void runGateway(Configuration conf, int port) {
        try {
            conf.set("hbase.regionserver.thrift.ipaddress", "127.0.0.1");
            new ThriftServer(conf).run(new String[] {"-b", "127.0.0.1", "-p", "" + port, "--infoport", "-1", "start"});
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    static void awaitServer(int port) throws Exception {
        while (true) {
            try (Socket socket = new Socket()) {
                socket.connect(new InetSocketAddress("127.0.0.1", port), 1000);
                return;
            } catch (java.io.IOException notYet) {
                Thread.sleep(50);
            }
        }
    }

    static void obey(MiniHBaseCluster cluster, PrintStream out) {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals("root")) {
                    out.println("root " + cluster.getConfiguration().get(HConstants.HBASE_DIR));
                    out.flush();
                    continue;
                }
                String[] words = line.split(" ");
                if (!words[0].equals("kill") || words.length != 2) {
                    System.err.println("unknown: " + line);
                    continue;
                }
                byte[] first = cluster.getRegions(TableName.valueOf(words[1])).get(0).getRegionInfo().getRegionName();
                ServerName server = cluster.getServerHoldingRegion(TableName.valueOf(words[1]), first);
                cluster.killRegionServer(server);
                out.println("done " + line);
                out.flush();
            }
        } catch (Exception error) {
            error.printStackTrace();
        }
    }
}
