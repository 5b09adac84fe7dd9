import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat;
import org.apache.hadoop.util.hash.MurmurHash;

/**
 * The job of the papers as Hadoop would have it: 64-bit SimHash of character 5-grams, four blocks of 16 bits, distance at
 * most 3, in one process (LocalJobRunner). SimHashJob CORPUS OUT: a text on each line; a cluster on each line, the numbers
 * of its lines.
 */
public class SimHashJob {
    static final int WIDTH = 5, BLOCKS = 4, BLOCK_BITS = 16, DISTANCE = 3;

    /** A document, by its offset in the corpus, and its fingerprint. */
    public static class Candidate implements Writable {
        long document, fingerprint;

        @Override
        public void write(java.io.DataOutput out) throws IOException {
            out.writeLong(document);
            out.writeLong(fingerprint);
        }

        @Override
        public void readFields(java.io.DataInput in) throws IOException {
            document = in.readLong();
            fingerprint = in.readLong();
        }
    }

    public static class Fingerprint extends Mapper<LongWritable, Text, LongWritable, Candidate> {
        private final LongWritable block = new LongWritable();
        private final Candidate candidate = new Candidate();

        @Override
        protected void map(LongWritable offset, Text line, Context context) throws IOException, InterruptedException {
            candidate.document = offset.get();
            candidate.fingerprint = simhash(line.toString());
            for (int index = 0; index < BLOCKS; index++) {
                block.set((long) index << BLOCK_BITS | value(candidate.fingerprint, index));
                context.write(block, candidate);
            }
        }

        static long simhash(String text) {
            int[] scalars = text.codePoints().toArray();
            int width = Math.min(WIDTH, scalars.length);
            int[] sums = new int[64];
            for (int at = 0; at + width <= scalars.length; at++) {
                byte[] gram = new String(scalars, at, width).getBytes(StandardCharsets.UTF_8);
                // Two 32-bit values of Hadoop's own hash make 64 bits.
                long low = MurmurHash.getInstance().hash(gram, 1), high = MurmurHash.getInstance().hash(gram, 2);
                long hash = high << 32 | low & 0xffffffffL;
                for (int bit = 0; bit < 64; bit++) {
                    sums[bit] += (hash >>> bit & 1) == 1 ? 1 : -1;
                }
            }
            long fingerprint = 0;
            for (int bit = 0; bit < 64; bit++) {
                fingerprint |= sums[bit] > 0 ? 1L << bit : 0;
            }
            return fingerprint;
        }
    }

    public static class Compare extends Reducer<LongWritable, Candidate, LongWritable, LongWritable> {
        private final LongWritable low = new LongWritable(), high = new LongWritable();

        @Override
        protected void reduce(LongWritable block, Iterable<Candidate> candidates, Context context)
                throws IOException, InterruptedException {
            int index = (int) (block.get() >> BLOCK_BITS);
            List<long[]> earlier = new ArrayList<>();
            for (Candidate candidate : candidates) {
                for (long[] other : earlier) {
                    long different = candidate.fingerprint ^ other[1];
                    if (Long.bitCount(different) <= DISTANCE && firstEqual(different) == index) {
                        low.set(Math.min(candidate.document, other[0]));
                        high.set(Math.max(candidate.document, other[0]));
                        context.write(low, high);
                    }
                }
                earlier.add(new long[] {candidate.document, candidate.fingerprint});
            }
        }

        private static int firstEqual(long different) {
            int index = 0;
            while (value(different, index) != 0) {
                index++;
            }
            return index;
        }
    }

    static long value(long fingerprint, int index) {
        return fingerprint >>> index * BLOCK_BITS & (1 << BLOCK_BITS) - 1;
    }

    public static void main(String[] arguments) throws Exception {
        Path corpus = Path.of(arguments[0]), out = Path.of(arguments[1]);
        Path pairs = out.resolveSibling(out.getFileName() + ".pairs");
        Configuration configuration = new Configuration();
        configuration.set("textinputformat.record.delimiter", "\n"); // else a carriage return ends a line as well
        configuration.setInt("mapreduce.local.map.tasks.maximum", 2);
        configuration.setInt("mapreduce.local.reduce.tasks.maximum", 2);
        configuration.setLong(FileInputFormat.SPLIT_MAXSIZE, (Files.size(corpus) + 1) / 2);
        Job job = Job.getInstance(configuration, "simhash");
        job.setJarByClass(SimHashJob.class);
        job.setMapperClass(Fingerprint.class);
        job.setReducerClass(Compare.class);
        job.setNumReduceTasks(2);
        job.setMapOutputKeyClass(LongWritable.class);
        job.setMapOutputValueClass(Candidate.class);
        job.setOutputKeyClass(LongWritable.class);
        job.setOutputValueClass(LongWritable.class);
        job.setOutputFormatClass(SequenceFileOutputFormat.class);
        FileInputFormat.addInputPath(job, new org.apache.hadoop.fs.Path(corpus.toUri()));
        FileOutputFormat.setOutputPath(job, new org.apache.hadoop.fs.Path(pairs.toUri()));
        if (!job.waitForCompletion(false)) {
            throw new IOException("the job failed");
        }
        cluster(corpus, configuration, pairs, out);
    }

    /** Connected components of the pairs, each from its smallest line on. */
    static void cluster(Path corpus, Configuration configuration, Path pairs, Path out) throws IOException {
        Map<Long, Integer> rows = new HashMap<>();
        byte[] bytes = Files.readAllBytes(corpus);
        for (int at = 0; at < bytes.length; at++) {
            if (at == 0 || bytes[at - 1] == '\n') {
                rows.put((long) at, rows.size());
            }
        }
        int[] parents = new int[rows.size()];
        for (int row = 0; row < parents.length; row++) {
            parents[row] = row;
        }
        for (int part = 0; part < 2; part++) {
            String name = String.format("part-r-%05d", part);
            var file = SequenceFile.Reader.file(new org.apache.hadoop.fs.Path(pairs.resolve(name).toUri()));
            try (SequenceFile.Reader reader = new SequenceFile.Reader(configuration, file)) {
                LongWritable low = new LongWritable(), high = new LongWritable();
                while (reader.next(low, high)) {
                    int a = root(parents, rows.get(low.get())), b = root(parents, rows.get(high.get()));
                    parents[Math.max(a, b)] = Math.min(a, b);
                }
            }
        }
        StringBuilder[] lines = new StringBuilder[parents.length];
        for (int row = 0; row < parents.length; row++) {
            int root = root(parents, row);
            lines[root] = lines[root] == null ? new StringBuilder().append(row) : lines[root].append(' ').append(row);
        }
        try (BufferedWriter writer = Files.newBufferedWriter(out)) {
            for (StringBuilder line : lines) {
                if (line != null && line.indexOf(" ") > 0) {
                    writer.append(line).append('\n');
                }
            }
        }
    }

    private static int root(int[] parents, int row) {
        while (parents[row] != row) {
            parents[row] = parents[parents[row]];
            row = parents[row];
        }
        return row;
    }
}
