import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellComparator;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Rows of the article's table as its observer leaves them, made without it, since a put for each document takes hours.
 *
 * <p>They are either all rows of some documents, or some rows of a table that is much larger. A table of 164 million
 * documents has 65,536 rows of 10,000 members. 400 of them have four million members, as many as a million documents
 * have. Each member of such a row has the block of the row at one of its four places, and the rest of its digits is
 * random.
 */
final class ArticleRows {
    static final String TOPIC = "news";

    /** Description, switches of the table, and fingerprints of a set. */
    final String name;
    final boolean numbersBlocks;
    final int size;
    /** Number of values that the blocks of new documents have, so that these go into the rows that are there. */
    private final int values;
    private final TreeMap<String, Members> rows = new TreeMap<>();

    /** Fingerprints of a row, in the order of their puts. */
    private static final class Members {
        private long[] all = new long[4];
        int count;

        /** Adds a fingerprint, unless it came to the same row by its block before this one. */
        void add(long fingerprint) {
            if (count > 0 && all[count - 1] == fingerprint) {
                return;
            }
            if (count == all.length) {
                all = Arrays.copyOf(all, 2 * count);
            }
            all[count++] = fingerprint;
        }
    }

    private ArticleRows(String name, boolean numbersBlocks, int size, int values) {
        this.name = name;
        this.numbersBlocks = numbersBlocks;
        this.size = size;
        this.values = values;
    }

    /** Returns all rows of some documents. */
    static ArticleRows ofDocuments(String name, boolean numbersBlocks, int size, long[] fingerprints) {
        ArticleRows made = new ArticleRows(name, numbersBlocks, size, 1 << 16);
        for (long fingerprint : fingerprints) {
            for (int block = 0; block < ArticleTable.BLOCKS; block++) {
                made.add(fingerprint, block);
            }
        }
        return made;
    }

    /** Returns some rows of a table, each with so many members. */
    static ArticleRows sample(String name, int size, int rows, int members) {
        ArticleRows made = new ArticleRows(name, false, size, rows);
        Random random = new Random(rows);
        for (int row = 0; row < rows; row++) {
            for (int member = 0; member < members; member++) {
                int block = member % ArticleTable.BLOCKS;
                made.add(with(random.nextLong(), block, made.value(row)), block);
            }
        }
        return made;
    }

    private void add(long fingerprint, int block) {
        String key = ArticleTable.row(TOPIC, numbersBlocks, fingerprint, block);
        rows.computeIfAbsent(key, made -> new Members()).add(fingerprint);
    }

    /** Returns the block of a row: they are spread evenly over those of 16 bits. */
    private long value(int row) {
        return ((long) row << 16) / values;
    }

    /** Returns a fingerprint with another block, the first of which has the highest bits. */
    private static long with(long fingerprint, int block, long value) {
        int shift = 16 * (ArticleTable.BLOCKS - 1 - block);
        return fingerprint & ~(0xFFFFL << shift) | value << shift;
    }

    /** Returns fingerprints of new documents, whose rows are among these. */
    long[] fresh(int count, long seed) {
        Random random = new Random(seed);
        return LongStream.range(0, count)
            .map(
                number -> {
                    long fingerprint = 0;
                    for (int block = 0; block < ArticleTable.BLOCKS; block++) {
                        fingerprint = with(fingerprint, block, value(random.nextInt(values)));
                    }
                    return fingerprint;
                })
            .toArray();
    }

    /** Returns the mean number of members of a row. */
    double members() {
        return rows.values().stream().mapToInt(row -> row.count).average().orElse(0);
    }

    int count() {
        return rows.size();
    }

    /** Returns the id of a document, of 14 characters. It depends on the fingerprint alone. */
    static String id(long fingerprint) {
        return String.format("id%012d", (fingerprint * 0x9E3779B97F4A7C15L >>> 1) % 1_000_000_000_000L);
    }

    /** Adds the rows to a table by a bulk load: a file for each region is written, and given to the region. */
    void load(Configuration conf, TableName table, Path folder) throws IOException {
        FileSystem files = folder.getFileSystem(conf);
        Path family = new Path(folder, Bytes.toString(ArticleObserver.FAMILY));
        IntStream.range(0, ArticleTable.PARTITIONS).parallel().forEach(
            partition -> {
                // Keys begin with the number of the partition, in two digits.
                String first = String.format("%02x", partition);
                try {
                    write(conf, files, new Path(family, first), rows.subMap(first, first + Character.MAX_VALUE));
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            });
        BulkLoadHFiles.create(conf).bulkLoad(table, folder);
        files.delete(folder, true);
    }

    private void write(Configuration conf, FileSystem files, Path path, Map<String, Members> rows) throws IOException {
        HFileContextBuilder context = new HFileContextBuilder().withCellComparator(CellComparator.getInstance());
        HFile.WriterFactory factory = HFile.getWriterFactoryNoCache(conf).withPath(files, path);
        try (HFile.Writer writer = factory.withFileContext(context.build()).create()) {
            for (Map.Entry<String, Members> row : rows.entrySet()) {
                for (Cell cell : cells(row.getKey(), row.getValue())) {
                    writer.append(cell);
                }
            }
        }
    }

    /** Returns the cells of a row, in their order. */
    private List<Cell> cells(String key, Members members) {
        List<Cell> cells = new ArrayList<>();
        int sets = (members.count + size - 1) / size;
        cells.add(cell(key, ArticleObserver.SETS, "" + sets));
        for (int set = 1; set <= sets; set++) {
            StringBuilder json = new StringBuilder();
            for (int at = (set - 1) * size; at < Math.min(set * size, members.count); at++) {
                json.append(json.length() == 0 ? "{\"" : ",\"").append(ArticleTable.bits(members.all[at]));
                json.append("\":\"").append(id(members.all[at])).append('"');
            }
            cells.add(cell(key, ArticleObserver.column(set), json.append('}').toString()));
        }
        long last = members.all[members.count - 1];
        cells.add(cell(key, ArticleObserver.INPUT, ArticleTable.bits(last) + "__" + id(last)));
        cells.sort(CellComparator.getInstance());
        return cells;
    }

    private static Cell cell(String key, byte[] column, String value) {
        long now = System.currentTimeMillis();
        return new KeyValue(Bytes.toBytes(key), ArticleObserver.FAMILY, column, now, Bytes.toBytes(value));
    }
}
