//! The text of a PDF, page by page, in the order in which it is drawn.

use std::sync::Arc;

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::{BfString, CMapName, WritingMode};
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, interpret_page,
};

use super::named_fonts::with_readable_fonts;

/// Units of a font in one em, in which the interpreter gives widths and positions.
const UNITS: f64 = 1000.0;
/// Least distances between the end of a character and the next one, in ems. Beyond `GAP` along the line a
/// space is added; beyond `LINE` across it a newline.
const GAP: f64 = 0.2;
const LINE: f64 = 0.5;
/// Map by which the codes of a font are its characters. It is what a file means that names Identity-H or Identity-V where a
/// ToUnicode map should be.
const CODES_ARE_CHARACTERS: &[u8] =
    b"begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange 1 beginbfrange <0000> <ffff> <0000> endbfrange endcmap";

/// Returns the text of all pages, with a newline after each line and page.
///
/// A glyph becomes the character that its font gives: by its ToUnicode map, its names, or, for fonts that are
/// not embedded, the maps of Adobe's collections (GB1, CNS1, Japan1, Korea1) and the encoding of its name
/// (`named_fonts.rs`). Otherwise it becomes U+FFFD. A
/// document in which most characters are U+FFFD has no text. Images are not read. `max_bytes` bounds the
/// text, and the drawing instructions of each page. Memory: the file, and what the page needs. Errors say why
/// there is no text.
pub(super) fn text(bytes: Vec<u8>, max_bytes: usize) -> Result<String, String> {
    let open = |bytes| Pdf::new(bytes).map_err(|error| refused(error).to_owned());
    let mut pdf = open(bytes)?;
    if let Some(bytes) = with_readable_fonts(&pdf) {
        pdf = open(bytes)?;
    }
    let cache = InterpreterCache::new();
    let mut pen = Pen::new(max_bytes);
    for page in pdf.pages().iter() {
        if page.page_stream().is_some_and(|stream| stream.len() > max_bytes) {
            return Err(format!("the content of a page is longer than {max_bytes} bytes decompressed"));
        }
        // Nothing is drawn, so the size of the paper does not matter.
        let paper = Rect::new(0.0, 0.0, 1.0, 1.0);
        let mut context = Context::new(Affine::IDENTITY, paper, &cache, pdf.xref(), settings());
        interpret_page(page, &mut context, &mut pen);
        pen.end_line();
    }
    if pen.full {
        return Err(format!("its text is longer than {max_bytes} bytes"));
    }
    if pen.unknown * 2 > pen.characters {
        return Err("no text: its fonts do not say which characters most of its glyphs are".to_owned());
    }
    Ok(pen.text)
}

/// Returns settings with which names of maps are known.
fn settings() -> InterpreterSettings {
    let mut settings = InterpreterSettings::default();
    let known = settings.cmap_resolver.clone();
    settings.cmap_resolver = Arc::new(move |name| match name {
        CMapName::IdentityH | CMapName::IdentityV => Some(CODES_ARE_CHARACTERS),
        name => known(name),
    });
    settings
}

fn refused(error: LoadPdfError) -> &'static str {
    match error {
        LoadPdfError::Invalid => "the PDF is damaged beyond repair",
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            "the PDF is encrypted with a password"
        }
        LoadPdfError::Decryption(_) => "the PDF is encrypted in a way that is not known",
    }
}

/// End of the last character, where the next one is expected.
#[derive(Clone, Copy)]
struct TextPosition {
    at: Point,
    /// One em along the line, and one across it.
    along: Vec2,
    across: Vec2,
}

/// Drawing device that writes down the text.
struct Pen {
    text: String,
    max_bytes: usize,
    full: bool,
    characters: usize,
    /// Number of characters that are U+FFFD.
    unknown: usize,
    last: Option<TextPosition>,
    /// Place of the last run's first glyph, and the number of its glyphs.
    run: Option<(Point, usize)>,
}

impl Pen {
    fn new(max_bytes: usize) -> Self {
        Pen { text: String::new(), max_bytes, full: false, characters: 0, unknown: 0, last: None, run: None }
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.last = None;
        self.run = None;
    }

    fn write(&mut self, glyph: &Glyph<'_>, transform: Affine, mode: WritingMode) {
        let at = transform * Point::ZERO;
        let up = transform * Point::new(0.0, UNITS) - at;
        // Substitute glyphs are stretched along the line, so one em is measured across it.
        let right = (transform * Point::new(UNITS, 0.0) - at).normalize() * up.hypot();
        let (along, across) = match mode {
            WritingMode::Horizontal => (right, up),
            WritingMode::Vertical => (-up, right),
        };
        let width = match (mode, glyph) {
            (WritingMode::Horizontal, Glyph::Outline(glyph)) => glyph.advance_width(),
            (WritingMode::Horizontal, Glyph::Type3(glyph)) => glyph.advance_width(),
            (WritingMode::Vertical, _) => None,
        };
        let advance = width.map_or(1.0, |width| f64::from(width) / UNITS);
        let unicode = glyph.as_unicode();
        let mut buffer = [0; 4];
        let characters = match &unicode {
            Some(BfString::Char('\0')) | None => "\u{fffd}",
            Some(BfString::Char(character)) => character.encode_utf8(&mut buffer),
            Some(BfString::String(characters)) => characters,
        };
        self.characters += characters.chars().count();
        self.unknown += usize::from(characters == "\u{fffd}");
        if let Some(last) = self.last {
            self.move_to(last, at, characters);
        }
        if self.text.len() + characters.len() > self.max_bytes {
            self.full = true;
        } else {
            self.text.push_str(characters);
        }
        self.last = Some(TextPosition { at: at + along * advance, along, across });
    }

    /// Adds a newline or a space between the last character and the next, if they are apart.
    fn move_to(&mut self, last: TextPosition, at: Point, next: &str) {
        let step = at - last.at;
        let ems = |direction: Vec2| step.dot(direction) / direction.hypot2().max(f64::MIN_POSITIVE);
        if ems(last.across).abs() > LINE {
            if !self.text.ends_with('\n') {
                self.text.push('\n');
            }
        } else if ems(last.along) > GAP {
            // Han and kana are set without spaces, and their lines are spread to fill the width.
            let wide =
                |character: Option<char>| character.is_none_or(|c| c >= '\u{2e80}' || c.is_whitespace());
            if !wide(self.text.chars().next_back()) && !wide(next.chars().next()) {
                self.text.push(' ');
            }
        }
    }
}

impl<'a> Device<'a> for Pen {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        let Some(first) = run.glyphs().first() else { return };
        let this = ((props.transform * first.transform()) * Point::ZERO, run.glyphs().len());
        // Text that is filled and then stroked comes twice.
        if matches!(mode, DrawMode::Stroke(_)) && self.run == Some(this) {
            return;
        }
        self.run = Some(this);
        for glyph in run.glyphs() {
            if self.full {
                return;
            }
            self.write(glyph, props.transform * glyph.transform(), run.writing_mode());
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}
