import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.mapred.MiniMRClientCluster;
import org.apache.hadoop.mapred.MiniMRClientClusterFactory;

/**
 * A name node, a resource manager and a node manager in this process, with tasks in containers of their own. MiniYarn FOLDER INPUT OUTPUT: runs
 * {@link FingerprintPairs} on the files of INPUT, and copies what it writes to OUTPUT. Ends when the job does.
 */
public final class MiniYarn {
    public static void main(String[] arguments) throws Exception {
        String base = arguments[0];
        Configuration configuration = new Configuration();
        configuration.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, base + "/dfs");
        configuration.set("hadoop.tmp.dir", base + "/tmp");
        configuration.set("yarn.scheduler.minimum-allocation-mb", "256");
        configuration.set("yarn.nodemanager.vmem-check-enabled", "false");
        MiniDFSCluster files = new MiniDFSCluster.Builder(configuration).numDataNodes(1).format(true).build();
        files.waitActive();
        configuration.set("fs.defaultFS", files.getURI().toString());
        MiniMRClientCluster tasks = MiniMRClientClusterFactory.create(MiniYarn.class, 1, configuration);
        int status = 1;
        try {
            Configuration of = tasks.getConfig();
            for (String which : new String[] {
                "yarn.app.mapreduce.am.command-opts", "mapreduce.map.java.opts", "mapreduce.reduce.java.opts"}) {
                of.set(which, "-Xmx1g --add-opens=java.base/java.lang=ALL-UNNAMED");
            }
            for (String which : new String[] {
                "mapreduce.map.memory.mb", "mapreduce.reduce.memory.mb", "yarn.app.mapreduce.am.resource.mb"}) {
                of.set(which, "1024");
            }
            FileSystem store = files.getFileSystem();
            store.copyFromLocalFile(new Path(arguments[1]), new Path("/in"));
            FingerprintPairs.run(of, new Path(files.getURI() + "/in"), new Path(files.getURI() + "/out"), 2);
            store.copyToLocalFile(false, new Path("/out"), new Path(arguments[2]), true);
            Files.readAllLines(java.nio.file.Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith("VmHWM")).forEach(line -> System.out.println("Hadoop's servers, " + line));
            status = 0;
        } finally {
            tasks.stop();
            files.shutdown(true);
        }
        System.exit(status);
    }

    private MiniYarn() {
    }
}
