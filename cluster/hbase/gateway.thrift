// The calls of HBase's Thrift2 gateway that the index makes, and the fields that it sets or reads. Names and numbers are
// those of HBase 2.6. A field that is not here may come from the gateway, and is passed over.
//
// `thrift --gen rs -out . gateway.thrift` writes `gateway.rs`.

struct TColumn {
  1: required binary family,
  2: optional binary qualifier,
  3: optional i64 timestamp
}

struct TColumnValue {
  1: required binary family,
  2: required binary qualifier,
  3: required binary value,
  4: optional i64 timestamp
}

struct TResult {
  1: optional binary row,
  2: required list<TColumnValue> columnValues
}

struct TGet {
  1: required binary row,
  2: optional list<TColumn> columns,
  6: optional binary filterString,
  12: optional i32 storeLimit
}

struct TPut {
  1: required binary row,
  2: required list<TColumnValue> columnValues
}

struct TDelete {
  1: required binary row,
  2: optional list<TColumn> columns
}

struct TTimeRange {
  1: required i64 minStamp,
  2: required i64 maxStamp
}

struct TScan {
  1: optional binary startRow,
  2: optional binary stopRow,
  4: optional i32 caching,
  6: optional TTimeRange timeRange
}

union TMutation {
  1: TPut put,
  2: TDelete deleteSingle
}

struct TRowMutations {
  1: required binary row,
  2: required list<TMutation> mutations
}

enum TCompareOp {
  EQUAL = 2
}

struct TTableName {
  1: optional binary ns,
  2: required binary qualifier
}

enum TBloomFilterType {
  ROW = 1
}

enum TDataBlockEncoding {
  FAST_DIFF = 4
}

struct TColumnFamilyDescriptor {
  1: required binary name,
  5: optional TBloomFilterType bloomnFilterType,
  8: optional TDataBlockEncoding dataBlockEncoding,
  10: optional i32 maxVersions
}

struct TTableDescriptor {
  1: required TTableName tableName,
  2: optional list<TColumnFamilyDescriptor> columns
}

exception TIOError {
  1: optional string message,
  2: optional bool canRetry
}

exception TIllegalArgument {
  1: optional string message
}

service THBaseService {
  list<TResult> getMultiple(1: required binary table, 2: required list<TGet> tgets) throws (1: TIOError io),
  void putMultiple(1: required binary table, 2: required list<TPut> tputs) throws (1: TIOError io),
  list<TDelete> deleteMultiple(1: required binary table, 2: required list<TDelete> tdeletes) throws (1: TIOError io),
  bool checkAndPut(
    1: required binary table,
    2: required binary row,
    3: required binary family,
    4: required binary qualifier,
    5: binary value,
    6: required TPut tput
  ) throws (1: TIOError io),
  bool checkAndDelete(
    1: required binary table,
    2: required binary row,
    3: required binary family,
    4: required binary qualifier,
    5: binary value,
    6: required TDelete tdelete
  ) throws (1: TIOError io),
  bool checkAndMutate(
    1: required binary table,
    2: required binary row,
    3: required binary family,
    4: required binary qualifier,
    5: required TCompareOp compareOp,
    6: binary value,
    7: required TRowMutations rowMutations
  ) throws (1: TIOError io),
  list<TResult> getScannerResults(1: required binary table, 2: required TScan tscan, 3: i32 numRows = 1)
    throws (1: TIOError io, 2: TIllegalArgument ia),
  bool tableExists(1: TTableName tableName) throws (1: TIOError io),
  void createTable(1: required TTableDescriptor desc, 2: list<binary> splitKeys) throws (1: TIOError io),
  void disableTable(1: required TTableName tableName) throws (1: TIOError io),
  void deleteTable(1: required TTableName tableName) throws (1: TIOError io)
}
