import java.time.Duration;
import java.util.Arrays;

/** Times and costs of an operation that was done many times by one thread, each time for another fingerprint. */
record Timing(int operations, double medianMs, double rareMs, double serverMs, double clientMs, double writtenKb) {
    /** One of so many operations warms up, and is not counted. */
    private static final int WARM_UP = 5;
    /** Operations that are counted even if they take longer than they may. */
    private static final int LEAST = 5;

    /** Does something for a fingerprint. */
    interface Operation {
        void apply(long fingerprint) throws Exception;
    }

    /**
     * Does an operation for each fingerprint, as many as there are or as the time allows.
     *
     * <p>The times are the median and the 99th percentile. Processor time of the server and of the client, and bytes
     * that the server writes, are means of an operation.
     */
    static Timing of(HBaseProcess server, long[] fingerprints, double seconds, Operation operation) throws Exception {
        long start = System.nanoTime();
        int warm = 0;
        while (warm < fingerprints.length / WARM_UP && System.nanoTime() - start < 1e9 * seconds / WARM_UP) {
            operation.apply(fingerprints[warm++]);
        }
        Duration serverTime = server.processorTime();
        Duration clientTime = HBaseProcess.processorTime(ProcessHandle.current());
        long written = server.writtenBytes();
        double[] times = new double[fingerprints.length - warm];
        int done = 0;
        while (done < times.length && (done < LEAST || System.nanoTime() - start < 1e9 * seconds)) {
            long before = System.nanoTime();
            operation.apply(fingerprints[warm + done]);
            times[done++] = (System.nanoTime() - before) / 1e6;
        }
        times = Arrays.copyOf(times, done);
        Arrays.sort(times);
        return new Timing(
            done,
            times[done / 2],
            times[done * 99 / 100],
            millis(server.processorTime().minus(serverTime)) / done,
            millis(HBaseProcess.processorTime(ProcessHandle.current()).minus(clientTime)) / done,
            (server.writtenBytes() - written) / 1024.0 / done);
    }

    private static double millis(Duration time) {
        return time.toNanos() / 1e6;
    }
}
