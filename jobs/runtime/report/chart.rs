//! Charts of figures, as SVG.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// A figure: lines over a number, bars by name, or columns over a number.
pub enum Chart {
    /// Lines through points, with a dot at each point.
    Lines {
        /// Title above the chart; empty for none.
        title: String,
        /// Horizontal axis, over the first number of each point.
        x: Axis,
        /// Vertical axis, over the second number of each point.
        y: Axis,
        /// Name and points of each line.
        lines: Vec<(String, Vec<(f64, f64)>)>,
    },
    /// A histogram: the beginning of each column and its height. `mark`: where a vertical line stands.
    Columns {
        /// Title above the chart; empty for none.
        title: String,
        /// Horizontal axis, over the beginnings of the columns.
        x: Axis,
        /// Vertical axis, over the heights of the columns.
        y: Axis,
        /// Beginning and height of each column, by their beginnings.
        columns: Vec<(f64, f64)>,
        /// Width of each column, as a value of the horizontal axis.
        width: f64,
        /// Value on the horizontal axis where a line stands; `None` for no line.
        mark: Option<f64>,
    },
    /// Groups of bars: for each name, one value for each of the series.
    Bars {
        /// Title above the chart; empty for none.
        title: String,
        /// Vertical axis, over the values of the bars.
        y: Axis,
        /// Names of the series, which stand beside their colours if there are several.
        series: Vec<String>,
        /// Name of each group, and its values, one for each of the series.
        groups: Vec<(String, Vec<f64>)>,
    },
}

/// An axis with its name.
pub struct Axis {
    /// Name that stands beside the axis.
    pub name: &'static str,
    /// Whether places are logarithms of the values, where values below 1 count as 1.
    pub logarithmic: bool,
}

impl Axis {
    /// Returns an axis whose places are the values.
    pub fn linear(name: &'static str) -> Self {
        Axis { name, logarithmic: false }
    }

    /// Returns an axis whose places are the logarithms of the values; values below 1 count as 1.
    pub fn logarithmic(name: &'static str) -> Self {
        Axis { name, logarithmic: true }
    }

    /// Returns the place of a value on the axis. Values of a logarithmic axis below 1 are drawn as 1.
    fn place(&self, value: f64) -> f64 {
        if self.logarithmic { value.max(1.0).log10() } else { value }
    }

    /// Returns the places of the ends of the axis for these values.
    fn ends(&self, values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let places = values.map(|value| self.place(value));
        let most = places.clone().fold(f64::MIN_POSITIVE, f64::max);
        let least = if self.logarithmic { places.fold(most, f64::min).floor() } else { 0.0 };
        (least, least + 1.05 * (most - least).max(f64::EPSILON))
    }

    fn label(&self, place: f64) -> String {
        let value = if self.logarithmic { 10_f64.powf(place) } else { place };
        let (value, unit) = match value.abs() {
            1e9.. => (value / 1e9, "G"),
            1e6.. => (value / 1e6, "M"),
            1e3.. => (value / 1e3, "k"),
            _ => (value, ""),
        };
        let digits = match value.abs() {
            _ if value.fract().abs() < 0.005 => 0,
            ..1.0 => 2,
            ..10.0 => 1,
            _ => 0,
        };
        format!("{value:.digits$}{unit}")
    }
}

/// Size of a chart, in pixels.
const SIZE: (u32, u32) = (860, 400);
/// Width of its part with the curves, in pixels. The names of the series stand beside it.
const PLANE: u32 = 600;
/// Colours that people with any colour vision can tell apart, the first six by Okabe and Ito.
const COLOURS: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(240, 228, 66),
    RGBColor(153, 153, 153),
    RGBColor(102, 51, 0),
    RGBColor(0, 51, 102),
    RGBColor(170, 51, 119),
    RGBColor(102, 153, 0),
];

/// Plane of a chart with its axes.
type Plane<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

impl Chart {
    /// Draws the chart as one SVG element, which needs no other file.
    pub fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        self.draw(SVGBackend::with_string(&mut svg, SIZE))
            .map_err(|error| anyhow!("could not draw a chart: {error}"))?;
        Ok(svg)
    }

    fn draw<B: DrawingBackend>(&self, backend: B) -> Drawn<B> {
        let area = backend.into_drawing_area();
        area.fill(&WHITE)?;
        let (plane, names) = if self.named() { area.split_horizontally(PLANE) } else { (area.clone(), area) };
        let (title, y) = match self {
            Chart::Lines { title, y, .. }
            | Chart::Columns { title, y, .. }
            | Chart::Bars { title, y, .. } => (title, y),
        };
        let (horizontal, vertical) = self.ends();
        let mut plane = ChartBuilder::on(&plane)
            .caption(title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(horizontal.0..horizontal.1, vertical.0..vertical.1)?;
        let y_label = |place: &f64| y.label(*place);
        let mut mesh = plane.configure_mesh();
        mesh.light_line_style(TRANSPARENT).y_desc(y.name).y_label_formatter(&y_label);
        match self {
            Chart::Lines { x, lines, .. } => {
                mesh.x_desc(x.name).x_label_formatter(&|place| x.label(*place)).draw()?;
                draw_lines(&mut plane, (x, y), lines)?;
            }
            Chart::Columns { x, columns, width, mark, .. } => {
                mesh.disable_x_mesh().x_desc(x.name).x_label_formatter(&|place| x.label(*place)).draw()?;
                draw_columns(&mut plane, (x, y, vertical), columns, *width)?;
                let line = mark.map(|mark| vec![(x.place(mark), vertical.0), (x.place(mark), vertical.1)]);
                plane.draw_series(line.map(|line| PathElement::new(line, COLOURS[1].stroke_width(2))))?;
            }
            Chart::Bars { groups, .. } => {
                let name = |place: &f64| {
                    let is_middle = (place.fract() - 0.5).abs() < 0.01;
                    let group = groups.get(place.floor() as usize).filter(|_| is_middle);
                    group.map_or(String::new(), |group| group.0.clone())
                };
                mesh.disable_x_mesh().x_labels(2 * groups.len() + 1).x_label_formatter(&name).draw()?;
                draw_bars(&mut plane, (y, vertical.0), groups)?;
            }
        }
        if self.named() {
            self.draw_names(&names)?;
        }
        names.present()
    }

    /// Whether there are several series, whose names stand beside the curves. The name of a single one is that of the axis.
    fn named(&self) -> bool {
        match self {
            Chart::Lines { lines, .. } => lines.len() > 1,
            Chart::Bars { series, .. } => series.len() > 1,
            Chart::Columns { .. } => false,
        }
    }

    /// Returns the ends of both axes.
    fn ends(&self) -> ((f64, f64), (f64, f64)) {
        match self {
            Chart::Lines { x, y, lines, .. } => {
                let points = lines.iter().flat_map(|line| line.1.iter());
                (x.ends(points.clone().map(|point| point.0)), y.ends(points.map(|point| point.1)))
            }
            Chart::Columns { x, y, columns, width, .. } => {
                let (left, right) = (columns.first(), columns.last());
                let ends = [left, right].map(|end| end.map_or(0.0, |column| column.0));
                let heights = columns.iter().map(|column| column.1);
                ((x.place(ends[0]), x.place(ends[1] + width)), y.ends(heights))
            }
            Chart::Bars { y, groups, .. } => {
                let values = groups.iter().flat_map(|group| group.1.iter().copied());
                ((0.0, groups.len() as f64), y.ends(values))
            }
        }
    }

    /// Writes the name of each series beside its colour.
    fn draw_names<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn<B> {
        let names: Vec<&String> = match self {
            Chart::Lines { lines, .. } => lines.iter().map(|line| &line.0).collect(),
            Chart::Bars { series, .. } => series.iter().collect(),
            Chart::Columns { .. } => Vec::new(),
        };
        for ((number, name), colour) in (0..).zip(names).zip(COLOURS.iter().cycle()) {
            let top = 48 + 22 * number;
            area.draw(&Rectangle::new([(4, top), (16, top + 12)], colour.filled()))?;
            area.draw(&Text::new(name.as_str(), (24, top), ("sans-serif", 13)))?;
        }
        Ok(())
    }
}

fn draw_lines<B: DrawingBackend>(
    plane: &mut Plane<B>,
    (x, y): (&Axis, &Axis),
    lines: &[(String, Vec<(f64, f64)>)],
) -> Drawn<B> {
    for ((_, points), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let places: Vec<_> = points.iter().map(|point| (x.place(point.0), y.place(point.1))).collect();
        plane.draw_series(places.iter().map(|place| Circle::new(*place, 3, colour.filled())))?;
        plane.draw_series(LineSeries::new(places, colour.stroke_width(2)))?;
    }
    Ok(())
}

/// Draws columns from the horizontal axis, which is the first of the ends of the other one.
fn draw_columns<B: DrawingBackend>(
    plane: &mut Plane<B>,
    (x, y, (bottom, _)): (&Axis, &Axis, (f64, f64)),
    columns: &[(f64, f64)],
    width: f64,
) -> Drawn<B> {
    let column = |&(from, height): &(f64, f64)| {
        let corners = [(x.place(from), bottom), (x.place(from + 0.9 * width), y.place(height))];
        Rectangle::new(corners, COLOURS[0].filled())
    };
    plane.draw_series(columns.iter().map(column))?;
    Ok(())
}

/// Draws bars from `bottom`, the place of the horizontal axis.
fn draw_bars<B: DrawingBackend>(
    plane: &mut Plane<B>,
    (y, bottom): (&Axis, f64),
    groups: &[(String, Vec<f64>)],
) -> Drawn<B> {
    for (group, (_, values)) in groups.iter().enumerate() {
        let width = 0.8 / values.len() as f64;
        let bars = values.iter().enumerate().zip(COLOURS.iter().cycle());
        plane.draw_series(bars.map(|((number, value), colour)| {
            let from = group as f64 + 0.1 + number as f64 * width;
            Rectangle::new([(from, bottom), (from + 0.9 * width, y.place(*value))], colour.filled())
        }))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_its_points_and_no_raw_markup() {
        let points = vec![(10.0, 1.0), (1_000.0, 100.0)];
        let lines = vec![("a < b".to_owned(), points), ("c".to_owned(), Vec::new())];
        let title = "Pairs & texts".to_owned();
        let chart = Chart::Lines { title, x: Axis::logarithmic("texts"), y: Axis::linear("pairs"), lines };
        let svg = chart.svg().unwrap();
        assert!(
            svg.starts_with("<svg") && svg.contains("a &lt; b") && svg.contains("Pairs &amp; texts"),
            "{svg}"
        );
        assert_eq!(svg.matches("<circle").count(), 2);
        let groups = vec![("one".to_owned(), vec![1.0, 2.0]), ("two".to_owned(), vec![3.0])];
        let series = vec!["x".to_owned(), "y".to_owned()];
        let bars =
            Chart::Bars { title: String::new(), y: Axis::linear("share"), series, groups }.svg().unwrap();
        assert!(bars.contains("one") && bars.contains("two"), "{bars}");
    }
}
