import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.Converter;
import org.apache.parquet.io.api.GroupConverter;
import org.apache.parquet.io.api.PrimitiveConverter;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimeUnit;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.OriginalType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Type.Repetition;
import org.apache.parquet.schema.Types;

/** Parquet files of random schemas as parquet-mr, the library of Hadoop and Spark, writes them, and their comparison with what a job has made of them. */
public class ParquetMr {
    static final String USAGE =
        "write FOLDER FILES SEED\n    writes files of random schemas, with columns id and text; a third of the texts repeat an earlier one\n"
            + "compare FOLDER OUTPUT\n    compares each row of the files with the same row in kept/ or removed/: schema, key-values, levels, bytes";

    static final String[] REMOVAL_COLUMNS = {"duplicate_of", "similarity", "cluster", "reason"};

    public static void main(String[] args) throws Exception {
        if (args.length == 4 && args[0].equals("write")) {
            for (int number = 0; number < Integer.parseInt(args[2]); number++) {
                new RandomFile(number, Long.parseLong(args[3])).write(new File(args[1], String.format("f%05d.parquet", number)));
            }
        } else if (args.length == 3 && args[0].equals("compare")) {
            compare(new File(args[1]), new File(args[2]));
        } else {
            System.err.println(USAGE);
            System.exit(2);
        }
    }

    /** A file whose schema and rows follow from a seed. */
    static class RandomFile {
        static final CompressionCodecName[] CODECS = {
            CompressionCodecName.UNCOMPRESSED, CompressionCodecName.GZIP, CompressionCodecName.SNAPPY, CompressionCodecName.ZSTD
        };
        static final String[] NAMES = {"a", "key", "value", "element", "array", "list", "bag", "a.b", "名", "x y", "map", "Ünï", "key_value", "e\"q"};

        final int number;
        final Random random;
        int names = 0;

        RandomFile(int number, long seed) {
            this.number = number;
            random = new Random(seed * 1_000_003 + number);
        }

        String name() {
            return NAMES[random.nextInt(NAMES.length)] + names++;
        }

        Repetition repetition(boolean repeated) {
            return Repetition.values()[random.nextInt(repeated ? 3 : 2)];
        }

        MessageType schema() {
            List<Type> fields = new ArrayList<>();
            fields.add(Types.required(PrimitiveTypeName.BINARY).as(LogicalTypeAnnotation.stringType()).named("id"));
            fields.add(Types.required(PrimitiveTypeName.BINARY).as(LogicalTypeAnnotation.stringType()).named("text"));
            for (int more = 1 + random.nextInt(5); more > 0; more--) {
                fields.add(field(name(), repetition(true), 0));
            }
            Collections.shuffle(fields, random);
            MessageType schema = new MessageType(random.nextBoolean() ? "spark_schema" : "hive schema", fields);
            return schema;
        }

        Type field(String name, Repetition repetition, int depth) {
            int kind = depth >= 3 ? 0 : random.nextInt(10);
            switch (kind) {
                case 6:
                    return group(name, repetition, depth);
                case 7:
                    return list(name, repetition == Repetition.REPEATED ? Repetition.OPTIONAL : repetition, depth);
                case 8:
                    return map(name, repetition == Repetition.REPEATED ? Repetition.OPTIONAL : repetition, depth);
                default:
                    PrimitiveType type = primitive(name, repetition);
                    return random.nextInt(4) == 0 ? type.withId(random.nextInt(1000)) : type;
            }
        }

        GroupType group(String name, Repetition repetition, int depth) {
            List<Type> fields = new ArrayList<>();
            for (int more = 1 + random.nextInt(3); more > 0; more--) {
                fields.add(field(name(), repetition(true), depth + 1));
            }
            return new GroupType(repetition, name, fields);
        }

        /** A list in the standard form, or in one of those that older writers used. */
        GroupType list(String name, Repetition repetition, int depth) {
            OriginalType list = OriginalType.LIST;
            switch (random.nextInt(5)) {
                case 0: // two levels: the repeated field is the element
                    return new GroupType(repetition, name, list, primitive("element", Repetition.REPEATED));
                case 1: // Avro's and Thrift's names
                    String middle = random.nextBoolean() ? "array" : name + "_tuple";
                    Type element = field("e", repetition(false), depth + 1);
                    return new GroupType(repetition, name, list, new GroupType(Repetition.REPEATED, middle, element));
                case 2: // Hive
                    element = field("array_element", Repetition.OPTIONAL, depth + 1);
                    return new GroupType(repetition, name, list, new GroupType(Repetition.REPEATED, "bag", element));
                case 3: // a repeated group of several fields
                    GroupType several = group("array", Repetition.REPEATED, depth + 1);
                    return new GroupType(repetition, name, list, several);
                default:
                    element = field("element", repetition(false), depth + 1);
                    return new GroupType(repetition, name, list, new GroupType(Repetition.REPEATED, "list", element));
            }
        }

        /** A map, also with keys that may be null, as Athena and Trino wrote them, and in Hive's older form. */
        GroupType map(String name, Repetition repetition, int depth) {
            Type key = random.nextInt(4) == 0 ? group("key", repetition(false), depth + 1) : primitive("key", repetition(false));
            boolean older = random.nextInt(4) == 0;
            OriginalType middle = older ? OriginalType.MAP_KEY_VALUE : null;
            String middleName = older ? "map" : random.nextInt(4) == 0 ? "entries" : "key_value";
            GroupType pair = random.nextInt(8) == 0
                ? new GroupType(Repetition.REPEATED, middleName, middle, key)
                : new GroupType(Repetition.REPEATED, middleName, middle, key, field("value", repetition(false), depth + 1));
            return new GroupType(repetition, name, OriginalType.MAP, pair);
        }

        PrimitiveType primitive(String name, Repetition repetition) {
            switch (random.nextInt(9)) {
                case 0:
                    return Types.primitive(PrimitiveTypeName.BOOLEAN, repetition).named(name);
                case 1:
                    LogicalTypeAnnotation[] ints = {
                        null, LogicalTypeAnnotation.dateType(), LogicalTypeAnnotation.timeType(random.nextBoolean(), TimeUnit.MILLIS),
                        LogicalTypeAnnotation.intType(8, true), LogicalTypeAnnotation.intType(16, false),
                        LogicalTypeAnnotation.intType(32, false), LogicalTypeAnnotation.decimalType(2, 7)
                    };
                    return Types.primitive(PrimitiveTypeName.INT32, repetition).as(ints[random.nextInt(ints.length)]).named(name);
                case 2:
                    TimeUnit unit = TimeUnit.values()[random.nextInt(3)];
                    LogicalTypeAnnotation[] longs = {
                        null, LogicalTypeAnnotation.timestampType(random.nextBoolean(), unit),
                        LogicalTypeAnnotation.timeType(random.nextBoolean(), random.nextBoolean() ? TimeUnit.MICROS : TimeUnit.NANOS),
                        LogicalTypeAnnotation.intType(64, true), LogicalTypeAnnotation.intType(64, false),
                        LogicalTypeAnnotation.decimalType(0, 18)
                    };
                    return Types.primitive(PrimitiveTypeName.INT64, repetition).as(longs[random.nextInt(longs.length)]).named(name);
                case 3:
                    return Types.primitive(PrimitiveTypeName.INT96, repetition).named(name);
                case 4:
                    return Types.primitive(PrimitiveTypeName.FLOAT, repetition).named(name);
                case 5:
                    return Types.primitive(PrimitiveTypeName.DOUBLE, repetition).named(name);
                case 6:
                    switch (random.nextInt(5)) {
                        case 0:
                            return Types.primitive(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, repetition).length(16).as(LogicalTypeAnnotation.uuidType()).named(name);
                        case 1:
                            return Types.primitive(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, repetition).length(12).as(OriginalType.INTERVAL).named(name);
                        case 2:
                            return Types.primitive(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, repetition).length(9).as(LogicalTypeAnnotation.decimalType(3, 20)).named(name);
                        case 3:
                            return Types.primitive(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, repetition).length(2).as(LogicalTypeAnnotation.float16Type()).named(name);
                        default:
                            return Types.primitive(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, repetition).length(1 + random.nextInt(20)).named(name);
                    }
                default:
                    LogicalTypeAnnotation[] binaries = {
                        null, LogicalTypeAnnotation.stringType(), LogicalTypeAnnotation.enumType(), LogicalTypeAnnotation.jsonType(),
                        LogicalTypeAnnotation.bsonType(), LogicalTypeAnnotation.decimalType(1, 30)
                    };
                    return Types.primitive(PrimitiveTypeName.BINARY, repetition).as(binaries[random.nextInt(binaries.length)]).named(name);
            }
        }

        void write(File file) throws IOException {
            MessageType schema = schema();
            Map<String, String> keyValues = new HashMap<>();
            for (int more = random.nextInt(3); more > 0; more--) {
                keyValues.put("key " + more, random.nextBoolean() ? "" : "值" + random.nextInt());
            }
            ExampleParquetWriter.Builder builder = ExampleParquetWriter.builder(HadoopOutputFile.fromPath(new Path(file.toURI()), new Configuration()))
                .withType(schema)
                .withExtraMetaData(keyValues)
                .withCompressionCodec(CODECS[random.nextInt(CODECS.length)])
                .withWriterVersion(WriterVersion.values()[random.nextInt(2)])
                .withDictionaryEncoding(random.nextBoolean())
                .withPageSize(64 << random.nextInt(8))
                .withPageRowCountLimit(1 + random.nextInt(40))
                .withRowGroupSize((long) 1 << (10 + random.nextInt(6)))
                .withMinRowCountForPageSizeCheck(1)
                .withPageWriteChecksumEnabled(random.nextBoolean());
            try (ParquetWriter<Group> writer = builder.build()) {
                int rows = 1 + random.nextInt(60);
                for (int row = 0; row < rows; row++) {
                    SimpleGroup group = new SimpleGroup(schema);
                    for (Type field : schema.getFields()) {
                        if (field.getName().equals("id")) {
                            group.add("id", number + "/" + row);
                        } else if (field.getName().equals("text")) {
                            int text = row > 0 && random.nextInt(3) == 0 ? random.nextInt(row) : row;
                            group.add("text", "第" + number + "个文件的第" + text + "行");
                        } else {
                            fill(group, field);
                        }
                    }
                    writer.write(group);
                }
            }
        }

        void fill(Group group, Type field) {
            int count = field.isRepetition(Repetition.REQUIRED) ? 1
                : field.isRepetition(Repetition.OPTIONAL) ? (random.nextInt(4) == 0 ? 0 : 1)
                : random.nextInt(4);
            for (; count > 0; count--) {
                if (field.isPrimitive()) {
                    add(group, field.asPrimitiveType());
                } else {
                    Group inner = group.addGroup(field.getName());
                    field.asGroupType().getFields().forEach(child -> fill(inner, child));
                }
            }
        }

        void add(Group group, PrimitiveType type) {
            String name = type.getName();
            // Few values, so that dictionaries have something to do, and the extremes among them.
            long[] numbers = {0, 1, -1, Long.MAX_VALUE, Long.MIN_VALUE, random.nextInt(5), random.nextLong()};
            long number = numbers[random.nextInt(numbers.length)];
            switch (type.getPrimitiveTypeName()) {
                case BOOLEAN: group.add(name, random.nextBoolean()); break;
                case INT32: group.add(name, (int) number); break;
                case INT64: group.add(name, number); break;
                case FLOAT: group.add(name, random.nextInt(5) == 0 ? Float.NaN : (float) number); break;
                case DOUBLE: group.add(name, random.nextInt(5) == 0 ? -0.0 : (double) number); break;
                case INT96: group.add(name, Binary.fromConstantByteArray(bytes(12))); break;
                case FIXED_LEN_BYTE_ARRAY: group.add(name, Binary.fromConstantByteArray(bytes(type.getTypeLength()))); break;
                default: group.add(name, Binary.fromConstantByteArray(bytes(random.nextInt(random.nextInt(10) == 0 ? 300 : 8)))); break;
            }
        }

        byte[] bytes(int length) {
            byte[] bytes = new byte[length];
            if (random.nextBoolean()) {
                random.nextBytes(bytes);
            } else {
                Arrays.fill(bytes, (byte) random.nextInt(3));
            }
            return bytes;
        }
    }

    /** Rows of a file by their id: each column that is no removal's, with its levels and bytes. */
    static class Contents {
        final String schema;
        final Map<String, String> keyValues;
        final Map<String, String> rows = new TreeMap<>();

        Contents(File file, boolean removed) throws IOException {
            try (ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(new Path(file.toURI()), new Configuration()))) {
                ParquetMetadata footer = reader.getFooter();
                MessageType schema = footer.getFileMetaData().getSchema();
                keyValues = new TreeMap<>(footer.getFileMetaData().getKeyValueMetaData());
                List<Type> own = new ArrayList<>(schema.getFields());
                if (removed) {
                    own.removeIf(field -> Arrays.asList(REMOVAL_COLUMNS).contains(field.getName()));
                }
                this.schema = new MessageType(schema.getName(), own).toString();
                PageReadStore group;
                while ((group = reader.readNextRowGroup()) != null) {
                    read(group, new MessageType(schema.getName(), own), footer.getFileMetaData().getCreatedBy());
                }
            }
        }

        void read(PageReadStore group, MessageType schema, String createdBy) {
            int count = (int) group.getRowCount();
            StringBuilder[] found = new StringBuilder[count];
            Arrays.setAll(found, row -> new StringBuilder());
            String[] ids = new String[count];
            ColumnReadStoreImpl columns = new ColumnReadStoreImpl(group, new Ignoring(schema), schema, createdBy);
            for (ColumnDescriptor column : schema.getColumns()) {
                ColumnReader reader = columns.getColumnReader(column);
                boolean isId = String.join("/", column.getPath()).equals("id");
                int row = -1;
                for (long value = 0; value < reader.getTotalValueCount(); value++) {
                    if (reader.getCurrentRepetitionLevel() == 0) {
                        found[++row].append("\n  ").append(String.join("/", column.getPath())).append(':');
                    }
                    int defined = reader.getCurrentDefinitionLevel();
                    found[row].append(' ').append(reader.getCurrentRepetitionLevel()).append(defined);
                    if (defined == column.getMaxDefinitionLevel()) {
                        String text = text(reader, column.getPrimitiveType().getPrimitiveTypeName());
                        found[row].append('=').append(text);
                        if (isId) {
                            ids[row] = new String(reader.getBinary().getBytes(), StandardCharsets.UTF_8);
                        }
                    }
                    reader.consume();
                }
                if (row + 1 != count) {
                    throw new IllegalStateException((row + 1) + " rows of " + count + " in " + column);
                }
            }
            for (int row = 0; row < count; row++) {
                if (rows.put(ids[row], found[row].toString()) != null) {
                    throw new IllegalStateException("two rows " + ids[row]);
                }
            }
        }

        static String text(ColumnReader reader, PrimitiveTypeName type) {
            switch (type) {
                case BOOLEAN: return String.valueOf(reader.getBoolean());
                case INT32: return String.valueOf(reader.getInteger());
                case INT64: return String.valueOf(reader.getLong());
                case FLOAT: return Integer.toHexString(Float.floatToRawIntBits(reader.getFloat()));
                case DOUBLE: return Long.toHexString(Double.doubleToRawLongBits(reader.getDouble()));
                default:
                    StringBuilder hex = new StringBuilder();
                    for (byte b : reader.getBinary().getBytes()) {
                        hex.append(String.format("%02x", b));
                    }
                    return hex.toString();
            }
        }
    }

    /** The column readers want converters, which are never called. */
    static class Ignoring extends GroupConverter {
        final GroupType type;

        Ignoring(GroupType type) {
            this.type = type;
        }

        @Override
        public Converter getConverter(int field) {
            Type child = type.getType(field);
            return child.isPrimitive() ? new PrimitiveConverter() {} : new Ignoring(child.asGroupType());
        }

        @Override
        public void start() {}

        @Override
        public void end() {}
    }

    static void compare(File folder, File output) throws IOException {
        Map<String, Contents> inputs = new HashMap<>();
        Map<String, String> wanted = new TreeMap<>();
        for (File file : files(folder)) {
            Contents contents = new Contents(file, false);
            contents.rows.keySet().forEach(id -> inputs.put(id, contents));
            wanted.putAll(contents.rows);
        }
        int differences = 0;
        for (String part : new String[] {"kept", "removed"}) {
            for (File file : files(new File(output, part))) {
                Contents contents = new Contents(file, part.equals("removed"));
                for (Map.Entry<String, String> row : contents.rows.entrySet()) {
                    Contents input = inputs.get(row.getKey());
                    String before = wanted.remove(row.getKey());
                    String what = !row.getValue().equals(before) ? "values:" + before + "\n" + row.getValue()
                        : !contents.schema.equals(input.schema) ? "schema:\n" + input.schema + contents.schema
                        : !contents.keyValues.equals(input.keyValues) ? "key-values: " + input.keyValues + " " + contents.keyValues
                        : null;
                    if (what != null && differences++ < 3) {
                        System.out.println(file + ", row " + row.getKey() + ", " + what);
                    }
                }
            }
        }
        if (!wanted.isEmpty()) {
            System.out.println(wanted.size() + " rows are missing, such as " + wanted.keySet().iterator().next());
        }
        System.out.println(differences + " rows differ");
        System.exit(differences == 0 && wanted.isEmpty() ? 0 : 1);
    }

    static List<File> files(File folder) {
        File[] found = folder.listFiles((parent, name) -> name.endsWith(".parquet"));
        List<File> files = new ArrayList<>(found == null ? List.of() : Arrays.asList(found));
        files.sort(null);
        return files;
    }
}
