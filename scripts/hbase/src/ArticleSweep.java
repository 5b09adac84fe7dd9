import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.VersionInfo;
import org.apache.log4j.Level;
import org.apache.log4j.LogManager;
import org.xerial.snappy.Snappy;

/**
 * Measures the article's table on a real HBase: puts and queries against the size of a row and the format of files.
 *
 * <p>The rows are loaded, compacted into their format, asked, and put into. docs/papers/hbase.md has the results.
 */
public final class ArticleSweep {
    static final String USAGE = "FOLDER OPTIONS DOCUMENTS SECONDS\nOPTIONS: the file of options for the Java of HBase";

    /** Formats of the column family. Those of a table are switches of `ArticleTable create`. */
    private enum Format {
        PLAIN,
        SNAPPY("COMPRESSION=SNAPPY"),
        FAST_DIFF("DATA_BLOCK_ENCODING=FAST_DIFF"),
        MOB("IS_MOB=true"),
        ALL("COMPRESSION=SNAPPY", "DATA_BLOCK_ENCODING=FAST_DIFF", "IS_MOB=true"),
        /** Shows how far two measurements of the same thing differ. */
        PLAIN_AGAIN;

        final List<String> switches;

        Format(String... switches) {
            this.switches = Arrays.asList(switches);
        }
    }

    /** Fingerprints of a set in the article, and of a set as it imagines one with MOB. */
    private static final int SET = 10_000;
    private static final int LARGE_SET = 100_000;
    /** A row of one set or of ten lacks so many fingerprints, which leaves room for the puts. */
    private static final int ROOM = 100;
    /** Most queries and puts of a table. */
    private static final int OPERATIONS = 1250;
    private static final int BITS = 3;
    private static final int COMPACTION_SECONDS = 300;

    private final HBaseProcess server;
    private final Connection connection;
    private final Admin admin;
    private final PrintStream out;
    /** Folder of HBase in HDFS. */
    private final Path root;
    private final FileSystem files;
    /** Lines of the table of queries, and of that of puts. */
    private final List<String> queries = new ArrayList<>();
    private final List<String> puts = new ArrayList<>();
    /** Time of the queries of a table, and of its puts: as many are done as it allows. */
    private final double seconds;
    private int tables;

    private ArticleSweep(HBaseProcess server, Connection connection, PrintStream out, double seconds)
            throws IOException {
        this.server = server;
        this.connection = connection;
        this.admin = connection.getAdmin();
        this.out = out;
        this.seconds = seconds;
        root = new Path(server.conf.get(HConstants.HBASE_DIR));
        files = root.getFileSystem(server.conf);
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        LogManager.getRootLogger().setLevel(Level.ERROR);
        if (args.length != 4) {
            System.err.println(USAGE);
            System.exit(2);
        }
        int documents = Integer.parseInt(args[2]);
        try (HBaseProcess server =
                new HBaseProcess(new File(args[0]), new File(args[1]), "-Xmx4g", Long.parseLong(args[3]));
            Connection connection = ConnectionFactory.createConnection(server.conf)) {
            new ArticleSweep(server, connection, out, Math.min(6, documents / 20_000.0)).run(documents);
        }
        System.exit(0); // HBase leaves threads behind
    }

    private void run(int documents) throws Exception {
        out.println(
            "HBase " + VersionInfo.getVersion() + ", Java " + System.getProperty("java.version") + ", Snappy by "
                + Compression.Algorithm.SNAPPY.getCompressor().getClass().getName() + " with snappy-java "
                + Snappy.getNativeLibraryVersion() + " (native)");
        check();
        long[] random = new Random(1).longs(documents).toArray();
        ArticleRows shared = ArticleRows.ofDocuments("documents", false, SET, random);
        measure(shared, Format.PLAIN);
        shared = null;
        ArticleRows apart = ArticleRows.ofDocuments("documents, block=true", true, SET, random);
        for (Format format : new Format[] {Format.PLAIN, Format.SNAPPY, Format.FAST_DIFF, Format.MOB}) {
            measure(apart, format);
        }
        apart = null;
        int pairs = ArticleTable.BLOCKS * documents;
        for (int members : new int[] {10, 100, 1000}) {
            measure(ArticleRows.sample("sample", SET, Math.min(1 << 14, pairs / members), members), Format.PLAIN);
        }
        int rows = Math.max(20, pairs / SET);
        ArticleRows full = ArticleRows.sample("sample", SET, rows, SET - ROOM);
        for (Format format : Format.values()) {
            measure(full, format);
        }
        full = null;
        int few = Math.max(8, pairs / LARGE_SET);
        measure(ArticleRows.sample("sample, ten sets", SET, few, LARGE_SET - ROOM), Format.PLAIN);
        ArticleRows large = ArticleRows.sample("sample, large sets", LARGE_SET, few, LARGE_SET - ROOM);
        measure(large, Format.PLAIN);
        measure(large, Format.MOB);
        print();
    }

    /** Holds the rows that are loaded against those that the observer makes of the same documents. */
    private void check() throws Exception {
        int size = 10;
        long[] fingerprints = new Random(2).longs(2000).map(bits -> bits & 0x00FF_00FF_00FF_00FFL).toArray();
        ArticleRows rows = ArticleRows.ofDocuments("check", false, size, fingerprints);
        try (Table loaded = create(rows, Format.PLAIN);
            Table put = create(rows, Format.PLAIN)) {
            load(rows, loaded);
            ArticleTable article = new ArticleTable(put, ArticleRows.TOPIC);
            for (long fingerprint : fingerprints) {
                put(article, put, fingerprint);
            }
            List<String> expected = cells(put);
            if (!cells(loaded).equals(expected)) {
                throw new IllegalStateException("the rows that are loaded are not those that the observer makes");
            }
            long asked = fingerprints[0];
            String answer = ArticleTable.answer(asked ^ 7, BITS, put.get(article.gets(asked ^ 7)));
            if (!Arrays.asList(answer.split(" ")).contains(ArticleRows.id(asked))) {
                throw new IllegalStateException("a document within three bits was not found: " + answer);
            }
            out.println("check: " + expected.size() + " cells by the observer and by the bulk load are equal");
            drop(loaded);
            drop(put);
        }
    }

    private static List<String> cells(Table table) throws IOException {
        List<String> found = new ArrayList<>();
        try (ResultScanner rows = table.getScanner(ArticleObserver.FAMILY)) {
            for (Result row : rows) {
                for (Cell cell : row.rawCells()) {
                    found.add(CellUtil.getCellKeyAsString(cell).replaceAll("/\\d+/Put.*", "")
                        + " " + new String(CellUtil.cloneValue(cell), StandardCharsets.UTF_8));
                }
            }
        }
        return found;
    }

    private void measure(ArticleRows rows, Format format) throws Exception {
        try (Table table = create(rows, format)) {
            load(rows, table);
            compact(table);
            double loadedMb = megabytes(table);
            ArticleTable article = new ArticleTable(table, ArticleRows.TOPIC);
            double part = seconds / 3;
            Timing cold =
                Timing.of(server, rows.fresh(OPERATIONS, 3), part, asked -> read(article, table, asked, false));
            warm(table);
            Timing read =
                Timing.of(server, rows.fresh(OPERATIONS, 4), part, asked -> read(article, table, asked, true));
            long[] candidates = {0, 0};
            Timing query = Timing.of(server, rows.fresh(OPERATIONS, 5), seconds, asked -> {
                String answer = ArticleTable.answer(asked, BITS, read(article, table, asked, true));
                candidates[0] += Long.parseLong(answer.split(" ")[0]);
                candidates[1]++;
            });
            Timing put = Timing.of(server, rows.fresh(OPERATIONS, 6), seconds, asked -> put(article, table, asked));
            String title = String.format("%-22s%8d%9.0f  %-12s", rows.name, rows.count(), rows.members(), format);
            queries.add(title + String.format("%9.0f%9.1f%9.2f%9.2f%9.2f%9.2f%9.2f%9.2f%7d",
                loadedMb, (double) candidates[0] / candidates[1], query.medianMs(), query.rareMs(),
                query.serverMs(), query.clientMs(), read.medianMs(), cold.medianMs(), query.operations()));
            puts.add(title + String.format("%9.2f%9.2f%9.2f%9.2f%11.1f%7d",
                put.medianMs(), put.rareMs(), put.serverMs(), put.clientMs(), put.writtenKb(), put.operations()));
            System.err.println(queries.get(queries.size() - 1));
            System.err.println(puts.get(puts.size() - 1));
            drop(table);
        }
    }

    private static Result[] read(ArticleTable article, Table table, long asked, boolean caches) throws IOException {
        List<Get> gets = article.gets(asked);
        gets.forEach(get -> get.setCacheBlocks(caches));
        return table.get(gets);
    }

    private static void put(ArticleTable article, Table table, long fingerprint) throws Exception {
        article.put(table, String.format("%016x %s", fingerprint, ArticleRows.id(fingerprint)));
    }

    private Table create(ArticleRows rows, Format format) throws Exception {
        TableName name = TableName.valueOf("sweep" + tables++);
        List<String> switches = new ArrayList<>(format.switches);
        switches.add("block=" + rows.numbersBlocks);
        switches.add("size=" + rows.size);
        ArticleTable.create(connection, name, switches);
        return connection.getTable(name);
    }

    private void load(ArticleRows rows, Table table) throws IOException {
        rows.load(server.conf, table.getName(), new Path(root.getParent(), "load-" + table.getName()));
    }

    /** Writes all files of a table anew, in the format of its column family, and waits until the others are gone. */
    private void compact(Table table) throws Exception {
        Path family = new Path("*", Bytes.toString(ArticleObserver.FAMILY));
        Path pattern = new Path(new Path(root, "data/default/" + table.getName()), new Path(family, "*"));
        Set<Path> before = paths(pattern);
        admin.majorCompact(table.getName());
        long start = System.nanoTime();
        do {
            if (System.nanoTime() - start > 1e9 * COMPACTION_SECONDS) {
                throw new IOException(table.getName() + " is not compacted after " + COMPACTION_SECONDS + " seconds");
            }
            Thread.sleep(200);
        } while (admin.getCompactionState(table.getName()) != CompactionState.NONE
            || !Collections.disjoint(before, paths(pattern)));
    }

    private Set<Path> paths(Path pattern) throws IOException {
        return Arrays.stream(files.globStatus(pattern)).map(FileStatus::getPath).collect(Collectors.toSet());
    }

    /** Reads a part of each block, and so brings all of them into the cache. */
    private static void warm(Table table) throws IOException {
        try (ResultScanner rows = table.getScanner(new Scan().setFilter(new FirstKeyOnlyFilter()))) {
            while (rows.next() != null) {}
        }
    }

    /** Returns the size of the files of a table, with those of MOB. */
    private double megabytes(Table table) throws IOException {
        long bytes = 0;
        for (String folder : new String[] {"data/default/", "mobdir/data/default/"}) {
            Path path = new Path(root, folder + table.getName());
            bytes += files.exists(path) ? files.getContentSummary(path).getLength() : 0;
        }
        return bytes / 1e6;
    }

    private void drop(Table table) throws IOException {
        admin.disableTable(table.getName());
        admin.deleteTable(table.getName());
    }

    private void print() {
        String title = String.format("%-22s%8s%9s  %-12s", "table", "rows", "members", "format");
        out.println("\nqueries: MB after the load and a major compaction; candidates; milliseconds of a query of four rows"
            + "\nfrom the block cache; processor of the server and of the client; the reading alone, from the cache"
            + "\nand past it");
        out.println(title + String.format("%9s%9s%9s%9s%9s%9s%9s%9s%7s",
            "MB", "cand.", "p50 ms", "p99 ms", "srv ms", "cli ms", "read ms", "past ms", "n"));
        queries.forEach(out::println);
        out.println("\nputs of one document into its four rows: milliseconds; processor of the server and of the"
            + "\nclient; KB that the server writes");
        out.println(title + String.format("%9s%9s%9s%9s%11s%7s",
            "p50 ms", "p99 ms", "srv ms", "cli ms", "KB written", "n"));
        puts.forEach(out::println);
    }
}
