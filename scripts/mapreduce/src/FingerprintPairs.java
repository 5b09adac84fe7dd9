import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.SequenceFileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;

/**
 * The join of the papers on Hadoop's own MapReduce: ids and 64-bit fingerprints from SequenceFiles, four blocks of 16 bits as keys, pairs
 * within three bits, each from the first block on which it agrees.
 */
public final class FingerprintPairs {
    private static final int BLOCKS = 4, BLOCK_BITS = 16, DISTANCE = 3;

    /** A fingerprint and the id of its document. */
    public static final class Print implements Writable {
        long bits;
        String id = "";

        @Override
        public void write(DataOutput out) throws IOException {
            out.writeLong(bits);
            out.writeUTF(id);
        }

        @Override
        public void readFields(DataInput in) throws IOException {
            bits = in.readLong();
            id = in.readUTF();
        }
    }

    /** Sends a fingerprint to the reducer of each of its blocks. */
    public static final class Blocks extends Mapper<Text, LongWritable, IntWritable, Print> {
        private final IntWritable key = new IntWritable();
        private final Print print = new Print();

        @Override
        protected void map(Text id, LongWritable bits, Context context) throws IOException, InterruptedException {
            print.bits = bits.get();
            print.id = id.toString();
            for (int block = 0; block < BLOCKS; block++) {
                key.set(block << BLOCK_BITS | value(print.bits, block));
                context.write(key, print);
            }
        }
    }

    /** Compares every two fingerprints of a block. */
    public static final class Compare extends Reducer<IntWritable, Print, Text, Text> {
        private final Text low = new Text(), high = new Text();

        @Override
        protected void reduce(IntWritable key, Iterable<Print> prints, Context context)
                throws IOException, InterruptedException {
            int block = key.get() >>> BLOCK_BITS;
            List<String> ids = new ArrayList<>();
            List<Long> earlier = new ArrayList<>();
            for (Print print : prints) {
                for (int at = 0; at < ids.size(); at++) {
                    long apart = print.bits ^ earlier.get(at);
                    if (Long.bitCount(apart) <= DISTANCE && firstEqual(apart) == block) {
                        boolean ordered = ids.get(at).compareTo(print.id) <= 0;
                        low.set(ordered ? ids.get(at) : print.id);
                        high.set(ordered ? print.id : ids.get(at));
                        context.write(low, high);
                    }
                }
                ids.add(print.id);
                earlier.add(print.bits);
            }
        }
    }

    private static int value(long bits, int block) {
        return (int) (bits >>> block * BLOCK_BITS) & (1 << BLOCK_BITS) - 1;
    }

    private static int firstEqual(long apart) {
        int block = 0;
        while (value(apart, block) != 0) {
            block++;
        }
        return block;
    }

    /** Runs the job, and prints its cost. */
    static void run(Configuration configuration, Path input, Path output, int reducers) throws Exception {
        Job job = Job.getInstance(configuration, "pairs of fingerprints");
        job.setJarByClass(FingerprintPairs.class);
        job.setInputFormatClass(SequenceFileInputFormat.class);
        job.setMapperClass(Blocks.class);
        job.setReducerClass(Compare.class);
        job.setNumReduceTasks(reducers);
        job.setMapOutputKeyClass(IntWritable.class);
        job.setMapOutputValueClass(Print.class);
        job.setOutputKeyClass(Text.class);
        job.setOutputValueClass(Text.class);
        FileInputFormat.addInputPath(job, input);
        FileOutputFormat.setOutputPath(job, output);
        long start = System.nanoTime();
        if (!job.waitForCompletion(false)) {
            throw new IOException("the job failed: " + job.getStatus().getFailureInfo());
        }
        Counters counters = job.getCounters();
        System.out.printf("Hadoop: %.1f s, %.1f CPU s of its tasks, %d pairs%n", (System.nanoTime() - start) / 1e9,
            counters.findCounter(TaskCounter.CPU_MILLISECONDS).getValue() / 1e3,
            counters.findCounter(TaskCounter.REDUCE_OUTPUT_RECORDS).getValue());
    }

    private FingerprintPairs() {
    }
}
