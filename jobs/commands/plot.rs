//! Curves in the unit square: as text for a terminal, as SVG for a page.

use std::fmt::Write as _;

/// Curve with both axes from 0 to 1.
pub(crate) struct Plot {
    pub title: String,
    /// Name of the horizontal axis.
    pub x: &'static str,
    /// Name of the vertical axis.
    pub y: &'static str,
    /// Points from left to right, joined by straight lines.
    pub points: Vec<(f64, f64)>,
    /// Point to be marked, and what is said of it.
    pub mark: Option<((f64, f64), String)>,
}

/// Width of the plane of a text plot, in characters.
const COLUMNS: usize = 61;
/// Height of the plane of a text plot, in lines.
const ROWS: usize = 17;
/// Width of the plane of an SVG, in pixels.
const WIDTH: f64 = 600.0;
/// Height of the plane of an SVG, in pixels.
const HEIGHT: f64 = 320.0;
/// Width of the margin around the plane, in pixels.
const MARGIN: f64 = 60.0;

impl Plot {
    /// Draws the curve as lines of ASCII; the last one ends with a newline.
    pub fn text(&self) -> String {
        let mut plane = vec![[b' '; COLUMNS]; ROWS];
        let cell = |(x, y): (f64, f64)| {
            let column = (x * (COLUMNS - 1) as f64).round() as usize;
            (ROWS - 1 - (y * (ROWS - 1) as f64).round() as usize, column)
        };
        for line in self.points.windows(2) {
            let steps = 2 * COLUMNS;
            for step in 0..=steps {
                let part = step as f64 / steps as f64;
                let between = |a: f64, b: f64| a + (b - a) * part;
                let (row, column) = cell((between(line[0].0, line[1].0), between(line[0].1, line[1].1)));
                plane[row][column] = b'*';
            }
        }
        if let Some((point, _)) = &self.mark {
            let (row, column) = cell(*point);
            plane[row][column] = b'O';
        }
        let mut text = format!("{}\n  {}\n", self.title, self.y);
        for (row, cells) in plane.iter().enumerate() {
            let label = match row % 4 {
                0 => format!("{:.2}", 1.0 - row as f64 / (ROWS - 1) as f64),
                _ => String::new(),
            };
            let _ = writeln!(text, "{label:>6} |{}", String::from_utf8_lossy(cells).trim_end());
        }
        let _ = writeln!(text, "{:6} +{}", "", "-".repeat(COLUMNS));
        let ticks: String =
            (0..=5).map(|tick| format!("{:<12}", format!("{:.1}", f64::from(tick) / 5.0))).collect();
        let _ = writeln!(text, "{:6}  {}  {}", "", ticks.trim_end(), self.x);
        if let Some((_, said)) = &self.mark {
            let _ = writeln!(text, "{:6}  O: {said}", "");
        }
        text
    }

    /// Draws the curve as one SVG element, which needs no other file.
    pub fn svg(&self) -> String {
        let at = |(x, y): (f64, f64)| (MARGIN + x * WIDTH, MARGIN + (1.0 - y) * HEIGHT);
        let (width, height) = (WIDTH + 2.0 * MARGIN, HEIGHT + 2.0 * MARGIN);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let label = |svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str| {
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
        };
        for tick in 0..=10 {
            let part = f64::from(tick) / 10.0;
            let lines = [((part, 0.0), (part, 1.0)), ((0.0, part), (1.0, part))];
            for ((x1, y1), (x2, y2)) in lines.map(|(from, to)| (at(from), at(to))) {
                let _ = writeln!(
                    svg,
                    "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#ddd\"/>"
                );
            }
            let ((x, bottom), (left, y)) = (at((part, 0.0)), at((0.0, part)));
            label(&mut svg, (x, bottom + 18.0), "middle", &format!("{part:.1}"));
            label(&mut svg, (left - 8.0, y + 4.0), "end", &format!("{part:.1}"));
        }
        label(&mut svg, (MARGIN, 24.0), "start", &self.title);
        label(&mut svg, (MARGIN, MARGIN - 12.0), "start", self.y);
        label(&mut svg, (MARGIN + WIDTH, height - 20.0), "end", self.x);
        let points: Vec<_> =
            self.points.iter().map(|&point| at(point)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        let _ = writeln!(
            svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"2\"/>"
        );
        if let Some((point, said)) = &self.mark {
            let (x, y) = at(*point);
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"#c0392b\"/>");
            label(&mut svg, (MARGIN, height - 20.0), "start", said);
        }
        svg + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let mark = Some(((0.5, 1.0), "at <0.5>".to_owned()));
        Plot {
            title: "t".to_owned(),
            x: "x",
            y: "y",
            points: vec![(0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (1.0, 1.0)],
            mark,
        }
    }

    #[test]
    fn a_step_is_drawn_as_one() {
        let text = plot().text();
        let rows: Vec<&str> = text.lines().skip(2).take(ROWS).map(|line| &line[8..]).collect();
        assert_eq!(rows[0], format!("{}O{}", " ".repeat(30), "*".repeat(30)));
        assert!(rows[1..ROWS - 1].iter().all(|row| *row == format!("{}*", " ".repeat(30))), "{text}");
        assert_eq!(rows[ROWS - 1], "*".repeat(31));
    }

    #[test]
    fn the_svg_has_the_points_and_no_raw_markup() {
        let svg = plot().svg();
        assert!(svg.contains("points=\"60.0,380.0 360.0,380.0 360.0,60.0 660.0,60.0\""), "{svg}");
        assert!(svg.contains("at &lt;0.5>") && svg.ends_with("</svg>\n"));
    }
}
