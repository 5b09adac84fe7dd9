import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.CoprocessorDescriptorBuilder;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** A client of the article's table, whose sets ArticleObserver keeps. docs/papers/hbase.md has what the article says. */
public class ArticleTable {
    static final String USAGE =
        "ZOOKEEPER-PORT create TABLE [block=true] [lock=true] [ids=true] [size=N] [ATTRIBUTE=VALUE]\n"
            + "    block=true puts the number of the block into the row key; for the others see ArticleObserver\n"
            + "    ATTRIBUTE: of the column family, in capitals, such as COMPRESSION=SNAPPY\n"
            + "ZOOKEEPER-PORT insert TABLE TOPIC FILE THREADS\n"
            + "    FILE: lines of a fingerprint, in 16 hexadecimal digits, and an id\n"
            + "ZOOKEEPER-PORT query TABLE TOPIC FILE BITS\n"
            + "    prints for each line its fingerprint, the number of candidates, and the ids within BITS of it\n"
            + "TOPIC has four characters.";

    /** Number of partitions, and of blocks of a fingerprint. */
    static final int PARTITIONS = 64;
    static final int BLOCKS = 4;

    private final Table table;
    private final String topic;
    /** Whether row keys have the number of the block. */
    private final boolean numbersBlocks;

    ArticleTable(Table table, String topic) throws Exception {
        this.table = table;
        this.topic = topic;
        numbersBlocks = "true".equals(table.getDescriptor().getValue("block"));
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        String command = args.length < 3 ? "" : args[1];
        if (!command.equals("create") && args.length != 6) {
            System.err.println(USAGE);
            System.exit(2);
        }
        Configuration conf = HBaseConfiguration.create();
        conf.set(HConstants.ZOOKEEPER_QUORUM, "127.0.0.1");
        conf.set(HConstants.ZOOKEEPER_CLIENT_PORT, args[0]);
        try (Connection connection = ConnectionFactory.createConnection(conf)) {
            TableName name = TableName.valueOf(args[2]);
            if (command.equals("create")) {
                create(connection, name, Arrays.asList(args).subList(3, args.length));
                return;
            }
            try (Table table = connection.getTable(name)) {
                ArticleTable article = new ArticleTable(table, args[3]);
                List<String> lines = Files.readAllLines(Paths.get(args[4]));
                if (command.equals("insert")) {
                    article.insert(connection, lines, Integer.parseInt(args[5]));
                } else {
                    article.query(lines, Integer.parseInt(args[5]), out);
                }
            }
        }
        out.flush();
    }

    static void create(Connection connection, TableName name, List<String> switches) throws Exception {
        CoprocessorDescriptorBuilder observer = CoprocessorDescriptorBuilder.newBuilder("ArticleObserver");
        ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(ArticleObserver.FAMILY);
        TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
        for (String of : switches) {
            String[] parts = of.split("=");
            if (parts[0].equals("block")) {
                table.setValue(parts[0], parts[1]);
            } else if (Character.isUpperCase(of.charAt(0))) {
                family.setValue(parts[0], parts[1]);
            } else {
                observer.setProperty(parts[0], parts[1]);
            }
        }
        TableDescriptor described =
            table.setColumnFamily(family.build()).setCoprocessor(observer.build()).build();
        byte[][] splits = new byte[PARTITIONS - 1][];
        for (int partition = 1; partition < PARTITIONS; partition++) {
            splits[partition - 1] = Bytes.toBytes(String.format("%02x", partition));
        }
        connection.getAdmin().createTable(described, splits);
    }

    /** Returns the key of the row of a block: HashNumber_ContentType_16SimHash. */
    String row(long fingerprint, int block) {
        return row(topic, numbersBlocks, fingerprint, block);
    }

    static String row(String topic, boolean numbersBlocks, long fingerprint, int block) {
        String bits = bits(fingerprint).substring(16 * block, 16 * block + 16);
        String key = topic + "_" + (numbersBlocks ? block + "_" : "") + bits;
        return String.format("%02x", Math.abs(key.hashCode()) % PARTITIONS) + "_" + key;
    }

    /** Returns the 64 digits of a fingerprint. */
    static String bits(long fingerprint) {
        String digits = Long.toBinaryString(fingerprint);
        return "0".repeat(Long.SIZE - digits.length()) + digits;
    }

    void insert(Connection connection, List<String> lines, int threads) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<?>> tasks = new ArrayList<>();
        for (int thread = 0; thread < threads; thread++) {
            int first = thread;
            tasks.add(
                pool.submit(
                    () -> {
                        try (Table own = connection.getTable(table.getName())) {
                            for (int at = first; at < lines.size(); at += threads) {
                                put(own, lines.get(at));
                            }
                        }
                        return null;
                    }));
        }
        for (Future<?> task : tasks) {
            task.get();
        }
        pool.shutdown();
    }

    /** Puts one document into the rows of its four blocks. */
    void put(Table own, String line) throws Exception {
        String[] words = line.split(" ", 2);
        long fingerprint = Long.parseUnsignedLong(words[0], 16);
        byte[] value = Bytes.toBytes(bits(fingerprint) + "__" + words[1]);
        List<Put> puts = new ArrayList<>();
        for (int block = 0; block < BLOCKS; block++) {
            Put put = new Put(Bytes.toBytes(row(fingerprint, block)));
            puts.add(put.addColumn(ArticleObserver.FAMILY, ArticleObserver.INPUT, value));
        }
        own.put(puts);
    }

    void query(List<String> lines, int within, PrintStream out) throws Exception {
        for (String line : lines) {
            String digits = line.split(" ")[0];
            long fingerprint = Long.parseUnsignedLong(digits, 16);
            out.println(digits + " " + answer(fingerprint, within, table.get(gets(fingerprint))));
        }
    }

    /** Returns the gets of the rows of the four blocks of a fingerprint. */
    List<Get> gets(long fingerprint) {
        List<Get> gets = new ArrayList<>();
        for (int block = 0; block < BLOCKS; block++) {
            gets.add(new Get(Bytes.toBytes(row(fingerprint, block))));
        }
        return gets;
    }

    /** Compares a fingerprint with its rows. Returns the number of candidates, and the ids within so many bits. */
    static String answer(long fingerprint, int within, Result[] rows) {
        int candidates = 0;
        TreeMap<String, TreeSet<String>> near = new TreeMap<>();
        for (Result row : rows) {
            for (Map.Entry<String, JsonElement> pair : pairs(row)) {
                candidates++;
                long other = Long.parseUnsignedLong(pair.getKey(), 2);
                if (Long.bitCount(fingerprint ^ other) <= within) {
                    near.computeIfAbsent(pair.getKey(), key -> new TreeSet<>()).addAll(ids(pair.getValue()));
                }
            }
        }
        StringBuilder answer = new StringBuilder().append(candidates);
        near.values().forEach(ids -> ids.forEach(id -> answer.append(' ').append(id)));
        return answer.toString();
    }

    /** Returns the fingerprints of all sets of a row, with their ids. */
    static List<Map.Entry<String, JsonElement>> pairs(Result row) {
        byte[] sets = row.getValue(ArticleObserver.FAMILY, ArticleObserver.SETS);
        List<Map.Entry<String, JsonElement>> found = new ArrayList<>();
        for (int number = 1; sets != null && number <= Integer.parseInt(Bytes.toString(sets)); number++) {
            byte[] set = row.getValue(ArticleObserver.FAMILY, ArticleObserver.column(number));
            found.addAll(new Gson().fromJson(Bytes.toString(set), JsonObject.class).entrySet());
        }
        return found;
    }

    static List<String> ids(JsonElement of) {
        List<String> found = new ArrayList<>();
        if (of.isJsonArray()) {
            of.getAsJsonArray().forEach(id -> found.add(id.getAsString()));
        } else {
            found.add(of.getAsString());
        }
        return found;
    }
}
