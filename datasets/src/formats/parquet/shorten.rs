//! Record batches in which parts of some texts are cut out.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BinaryViewArray, RecordBatch, StructArray};
use arrow_schema::DataType;

use super::file::File;
use super::schema;
use crate::parts::cut_text::without;
use crate::text::charset::Charset;
use crate::{BadText, Fate, Reading};

/// Maker of batches with other values in the column of the text. All other columns are shared with the batch that was
/// read. Memory: the texts of a batch.
pub(super) struct TextShortener {
    /// Path of the column.
    text: Vec<String>,
    charset: Charset,
}

impl TextShortener {
    /// Makes the texts of a file shorter.
    pub fn new(file: &File, reading: &Reading) -> Self {
        let column = file.footer.schema.column(file.text);
        let charset = Charset::of_values(reading.encoding.filter(|_| schema::is_binary(column.as_ref())));
        TextShortener { text: column.path().parts().to_vec(), charset }
    }

    /// Returns a batch without what the fates of its rows cut. `None` if a text has no such ranges.
    pub fn shorten(&self, batch: &RecordBatch, fates: &[Fate]) -> Option<RecordBatch> {
        let (name, inner) = self.text.split_first()?;
        let at = batch.schema_ref().fields().iter().position(|field| field.name() == name)?;
        let mut columns = batch.columns().to_vec();
        columns[at] = self.column(&columns[at], inner, fates)?;
        RecordBatch::try_new(batch.schema(), columns).ok()
    }

    /// Returns a column with shorter texts, which lie in it at the path `inner`.
    fn column(&self, column: &ArrayRef, inner: &[String], fates: &[Fate]) -> Option<ArrayRef> {
        let Some((name, inner)) = inner.split_first() else { return self.values(column, fates) };
        let (fields, mut columns, nulls) = column.as_struct_opt()?.clone().into_parts();
        let at = fields.iter().position(|field| field.name() == name)?;
        columns[at] = self.column(&columns[at], inner, fates)?;
        Some(Arc::new(StructArray::try_new(fields, columns, nulls).ok()?))
    }

    fn values(&self, column: &ArrayRef, fates: &[Fate]) -> Option<ArrayRef> {
        match column.data_type() {
            DataType::BinaryView => {
                let texts = self.texts(column.as_binary_view().iter(), fates)?;
                Some(Arc::new(BinaryViewArray::from_iter(texts)))
            }
            DataType::Binary => {
                let texts = self.texts(column.as_binary::<i32>().iter(), fates)?;
                Some(Arc::new(BinaryArray::from_iter(texts)))
            }
            _ => None,
        }
    }

    fn texts<'a>(
        &self,
        texts: impl Iterator<Item = Option<&'a [u8]>>,
        fates: &[Fate],
    ) -> Option<Vec<Option<Vec<u8>>>> {
        let shortened = texts.zip(fates).map(|(text, fate)| match (text, fate) {
            (Some(text), Fate::Cut(cuts)) => self.text(text, cuts).map(Some),
            (text, _) => Some(text.map(<[u8]>::to_vec)),
        });
        shortened.collect()
    }

    fn text(&self, text: &[u8], cuts: &[Range<usize>]) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        let (decoded, _) = self.charset.decode(text, BadText::Replace, &mut buffer).ok()?;
        Some(self.charset.encode(&without(decoded, cuts)?, text).into_owned())
    }
}
