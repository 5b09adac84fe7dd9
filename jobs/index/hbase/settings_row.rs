//! The row of a table that says what index it is.

use anyhow::{Context, Result, bail};
use hbase::{GatewayLimits, HBaseAddress, HBaseTable, TableCell, TableRow};
use operators::hash::Secret;
use operators::method::{KeptKeys, Method};
use operators::search::FingerprintKeys;
use operators::text::features::Lexicon;

use super::layout::{DocStamps, MOST_BITS, split_keys};
use crate::settings::IndexSettings;
use runtime::cli::exit::WrongUse;

/// Row behind all partitions.
const ROW: &[u8] = b"@index";
/// Column of the settings.
const SETTINGS: &[u8] = b"settings";
/// Column of the settings of an index that is being built, and of the number that its builder has drawn.
const BUILDING: &[u8] = b"building";

/// An open index in HBase. Any number of processes may read and change it.
pub(super) struct HBaseIndex {
    pub table: HBaseTable,
    pub settings: IndexSettings,
    pub method: Method,
    pub keys: KeptKeys,
    /// Largest distance of a match, in bits.
    pub distance: u32,
    /// Times and tokens of the documents that this process adds.
    pub stamps: DocStamps,
    /// Settings of a build, which become those of the index when all documents are there.
    building: Option<TableCell>,
}

impl HBaseIndex {
    /// Makes an empty index, which is none before [`HBaseIndex::finish_build`]. It takes the place of one that was never
    /// finished, and a table that is there and empty is used as it is.
    ///
    /// # Errors
    /// [`WrongUse`] when the table has anything else, or the method is no SimHash of 64 bits within 3 without texts.
    pub fn build(address: &HBaseAddress, settings: IndexSettings, lexicon: &Lexicon) -> Result<Self> {
        let mut index = HBaseIndex::with(address, settings, lexicon)?;
        if !index.table.create(&split_keys())? {
            let cells = row_of(&index.table)?;
            if cells.iter().any(|cell| cell.qualifier == BUILDING) {
                index.table.remove()?;
                index.table.create(&split_keys())?;
            } else if !index.table.scan(&[]..&[0xff], None, 1)?.is_empty() {
                bail!(WrongUse(format!(
                    "\"{address}\" is no empty table: index insert adds documents to an index"
                )));
            }
        }
        let value = serde_json::to_vec(&(&index.settings, index.stamps.process))?;
        let building = TableCell { row: ROW.to_vec(), qualifier: BUILDING.to_vec(), time: 0, value };
        if !index.table.put_if_absent(&building)? {
            bail!("another process builds \"{address}\"");
        }
        index.building = Some(building);
        Ok(index)
    }

    /// Makes the index one that others see.
    ///
    /// # Errors
    /// When another process has begun the index anew.
    pub fn finish_build(&mut self) -> Result<()> {
        let building = self.building.take().context("the index is not being built")?;
        let value = serde_json::to_vec(&self.settings)?;
        let settings = TableCell { qualifier: SETTINGS.to_vec(), value, ..building.clone() };
        if !self.table.replace(&building, &settings)? {
            bail!("another process has begun to build the same index; of two, neither may be whole");
        }
        Ok(())
    }

    /// Opens an index.
    ///
    /// # Errors
    /// [`WrongUse`] when there is no index.
    pub fn open(address: &HBaseAddress, lexicon: &Lexicon) -> Result<Self> {
        let none = || WrongUse(format!("\"{address}\" is no index: index build makes one"));
        let table = HBaseTable::new(address, GatewayLimits::default());
        if !table.exists()? {
            bail!(none());
        }
        let cells = row_of(&table)?;
        let settings = cells.iter().find(|cell| cell.qualifier == SETTINGS).with_context(none)?;
        let settings: IndexSettings = serde_json::from_slice(&settings.value)
            .with_context(|| format!("\"{address}\" is of another version of this program"))?;
        settings.check_format(&address.to_string())?;
        HBaseIndex::with(address, settings, lexicon)
    }

    fn with(address: &HBaseAddress, settings: IndexSettings, lexicon: &Lexicon) -> Result<Self> {
        let (method, keys) = settings.method(lexicon)?;
        let near = keys.fingerprints().filter(|of| of.bits == u64::BITS && of.distance <= MOST_BITS);
        let Some(FingerprintKeys { distance, .. }) = near.filter(|_| !settings.texts) else {
            bail!(WrongUse(format!(
                "an index in HBase has fingerprints of 64 bits within {MOST_BITS}, and no texts: \
                 take --method simhash --no-text, with any features"
            )));
        };
        Ok(HBaseIndex {
            table: HBaseTable::new(address, GatewayLimits::default()),
            settings,
            method,
            keys,
            distance,
            stamps: DocStamps::new(Secret::random().words()[0]),
            building: None,
        })
    }
}

fn row_of(table: &HBaseTable) -> Result<Vec<TableCell>> {
    Ok(table.rows(&[TableRow::First(ROW.to_vec(), 2)])?.concat())
}
