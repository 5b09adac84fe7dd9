import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeys;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;

/**
 * The program HBase in a process of its own, so that its processor time and its bytes are apart from the client's.
 *
 * <p>It has one region server, and ends when its standard input closes, when its time is up, or by its process id.
 */
final class HBaseProcess implements AutoCloseable {
    private static final String IDLE_MS = "60000";
    /** Removes the files that a compaction has replaced within a second, and compacts several regions at a time. */
    private static final List<String> SETTINGS =
        List.of(
            "hbase.hfile.compaction.discharger.interval=1000",
            "hbase.regionserver.thread.compaction.small=6",
            "hbase.regionserver.thread.compaction.large=6");

    private final Process process;
    private final BufferedReader answers;
    /** What a client needs to know: ZooKeeper, and the folder of HBase in HDFS. */
    final Configuration conf = HBaseConfiguration.create();

    /**
     * Starts HBase with the class path and the options of this program.
     *
     * @param folder for its files, and for its log
     * @param options lines of `java.options`
     */
    HBaseProcess(File folder, File options, String heap, long seconds) throws IOException {
        List<String> command = new ArrayList<>();
        Collections.addAll(
            command,
            ProcessHandle.current().info().command().orElse("java"),
            "@" + options,
            heap,
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp",
            System.getProperty("java.class.path"),
            "HBase",
            new File(folder, "data").getPath(),
            "1",
            "" + seconds,
            IDLE_MS);
        command.addAll(SETTINGS);
        process = new ProcessBuilder(command).redirectError(new File(folder, "log")).directory(folder).start();
        answers = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        conf.set(HConstants.ZOOKEEPER_QUORUM, "127.0.0.1");
        conf.set(HConstants.ZOOKEEPER_CLIENT_PORT, answer("ready").split(" ")[1]);
        OutputStream input = process.getOutputStream();
        input.write("root\n".getBytes(StandardCharsets.UTF_8));
        input.flush();
        String root = answer("root");
        conf.set(HConstants.HBASE_DIR, root);
        conf.set(CommonConfigurationKeys.FS_DEFAULT_NAME_KEY, root);
    }

    /** Reads the next line that begins with a word, and returns the rest of it. */
    private String answer(String word) throws IOException {
        for (String line = answers.readLine(); line != null; line = answers.readLine()) {
            if (line.startsWith(word + " ")) {
                return line.substring(word.length() + 1);
            }
        }
        throw new IOException("HBase has ended before it printed " + word + "; its log is in the folder of the sweep");
    }

    /** Returns the processor time of all threads so far. */
    Duration processorTime() {
        return processorTime(process.toHandle());
    }

    static Duration processorTime(ProcessHandle of) {
        return of.info().totalCpuDuration().orElseThrow();
    }

    /** Returns the bytes of all pages of files that the process has written so far: logs, and files of HDFS. */
    long writtenBytes() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/" + process.pid() + "/io"))) {
            if (line.startsWith("write_bytes: ")) {
                return Long.parseLong(line.substring("write_bytes: ".length()));
            }
        }
        throw new IOException("/proc/" + process.pid() + "/io has no write_bytes");
    }

    @Override
    public void close() throws IOException {
        process.getOutputStream().close();
        try {
            if (!process.waitFor(60, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException stopped) {
            process.destroyForcibly();
        }
    }
}
