import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionObserver;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;

/**
 * The observer of the article on an index of 100 billion texts: it keeps the sets of fingerprints of a row.
 *
 * <p>A client puts FINGERPRINT__ID into the column si of a row. Before the put, the observer adds the pair to the last
 * set of the row, which is a JSON object of at most 10,000 pairs in the column s1, s2 and so on; s0 has the number of
 * sets. A fingerprint that a set has already is not added. docs/papers/hbase.md has what the article says.
 *
 * <p>Two of the three faults of the article are in here, and arguments of the coprocessor mend them. lock=true reads and
 * rewrites a row under its lock. ids=true keeps all ids of a fingerprint, in an array, instead of the first. size=N makes
 * the sets smaller, for tests.
 */
public class ArticleObserver implements RegionCoprocessor, RegionObserver {
    static final byte[] FAMILY = Bytes.toBytes("f");
    static final byte[] INPUT = Bytes.toBytes("si");
    static final byte[] SETS = Bytes.toBytes("s0");

    private final Gson gson = new Gson();
    private boolean locks;
    private boolean keepsIds;
    private int size;

    @Override
    public void start(CoprocessorEnvironment env) {
        locks = env.getConfiguration().getBoolean("lock", false);
        keepsIds = env.getConfiguration().getBoolean("ids", false);
        size = env.getConfiguration().getInt("size", 10_000);
    }

    @Override
    public Optional<RegionObserver> getRegionObserver() {
        return Optional.of(this);
    }

    /** Has the arguments of the article's method. HBase 2.5 has one with fewer, which calls this one. */
    @Override
    @SuppressWarnings("deprecation")
    public void prePut(
            ObserverContext<RegionCoprocessorEnvironment> context, Put put, WALEdit edit, Durability durability)
            throws IOException {
        List<Cell> cells = put.get(FAMILY, INPUT);
        if (cells.isEmpty()) {
            return;
        }
        String[] pair = Bytes.toString(CellUtil.cloneValue(cells.get(0))).trim().split("__");
        if (pair.length != 2) {
            return;
        }
        Region region = context.getEnvironment().getRegion();
        if (!locks) {
            // Whoever reads the row before this put is written adds to what it was before, and one of the two is lost.
            add(region, put, pair[0], pair[1]);
            return;
        }
        // A put takes the lock of its row only after this method, and shares it with other puts.
        Region.RowLock lock = region.getRowLock(put.getRow(), false);
        try {
            Put sets = new Put(put.getRow());
            add(region, sets, pair[0], pair[1]);
            if (!sets.isEmpty()) {
                region.put(sets);
            }
        } finally {
            lock.release();
        }
    }

    /** Adds to a put what becomes of the sets of its row. */
    private void add(Region region, Put put, String fingerprint, String id) throws IOException {
        Get get = new Get(put.getRow());
        get.readVersions(1);
        get.addFamily(FAMILY);
        Result row = region.get(get);
        byte[] count = row.getValue(FAMILY, SETS);
        int sets = count == null ? 0 : Integer.parseInt(Bytes.toString(count));
        JsonObject last = new JsonObject();
        for (int number = 1; number <= sets; number++) {
            last = gson.fromJson(Bytes.toString(row.getValue(FAMILY, column(number))), JsonObject.class);
            if (last.has(fingerprint)) {
                if (keepsIds && addId(last.getAsJsonArray(fingerprint), id)) {
                    put.addColumn(FAMILY, column(number), Bytes.toBytes(gson.toJson(last)));
                }
                return;
            }
        }
        if (sets == 0 || last.size() == size) {
            last = new JsonObject();
            sets++;
            put.addColumn(FAMILY, SETS, Bytes.toBytes("" + sets));
        }
        if (keepsIds) {
            JsonArray ids = new JsonArray();
            ids.add(id);
            last.add(fingerprint, ids);
        } else {
            last.addProperty(fingerprint, id);
        }
        put.addColumn(FAMILY, column(sets), Bytes.toBytes(gson.toJson(last)));
    }

    /** Adds an id to those of a fingerprint. Returns whether it was not there. */
    private static boolean addId(JsonArray ids, String id) {
        for (JsonElement other : ids) {
            if (other.getAsString().equals(id)) {
                return false;
            }
        }
        ids.add(id);
        return true;
    }

    /** Returns the column of a set. */
    static byte[] column(int number) {
        return Bytes.toBytes("s" + number);
    }
}
