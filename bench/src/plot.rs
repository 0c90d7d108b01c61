//! Plots of a group of records, as SVG: curves where the group has an axis, else a bar for each record.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::record::{Record, Unit};
use crate::study::{Axis, Description, Original};

type Drawn = Result<String, String>;

const WIDTH: u32 = 900;
const CURVES: u32 = 480;
/// Of a bar, and around all of them.
const BAR: u32 = 26;
const AROUND: u32 = 90;

const COLOURS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(255, 127, 14),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
    RGBColor(23, 190, 207),
    RGBColor(127, 127, 127),
];

/// One curve: where it is on the axis, and the median, least and most there.
struct Curve {
    name: String,
    points: Vec<(f64, [f64; 3])>,
}

/// All plots of a group: one for each unit, and for bars one for each course that several contestants have.
pub fn plots(description: &Description, records: &[&Record]) -> Result<Vec<String>, String> {
    let mut units: Vec<Unit> = Vec::new();
    for record in records {
        if !units.contains(&record.subject.unit) {
            units.push(record.subject.unit);
        }
    }
    let mut plots = Vec::new();
    for unit in units {
        let of_unit: Vec<&Record> =
            records.iter().copied().filter(|record| record.subject.unit == unit).collect();
        if description.axis == Axis::Name {
            plots.push(bars(description, unit, &of_unit)?);
            continue;
        }
        // These are counted on axes of their own.
        let others = [Axis::Receivers, Axis::Senders, Axis::Switches];
        let others = others.into_iter().zip(["receivers", "senders", "switches"]);
        let mut rest = of_unit;
        for (along, label) in [(description.axis, description.axis_label)].into_iter().chain(others)
        {
            let is_on = |record: &&Record| axis(along, record).is_some();
            let (on, off): (Vec<&Record>, Vec<&Record>) = rest.into_iter().partition(is_on);
            rest = off;
            let all = curves(along, &on);
            if !all.is_empty() {
                plots.push(lines(description, unit, label, &all)?);
            }
        }
    }
    Ok(plots)
}

fn axis(axis: Axis, record: &Record) -> Option<f64> {
    let subject = &record.subject;
    let number = |n: Option<usize>| n.map(|n| n as f64);
    match axis {
        Axis::Batch => number(subject.batch),
        Axis::Size => number(subject.size),
        Axis::Ports => number(subject.ports),
        Axis::Receivers => number(subject.receivers),
        Axis::Senders => number(subject.senders),
        Axis::Switches => number(subject.switches),
        Axis::Share => subject.share.map(f64::from),
        Axis::Name => None,
    }
}

fn curves(along: Axis, records: &[&Record]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for record in records {
        let Some(x) = axis(along, record) else { continue };
        let name = curve_of(record);
        let summary = record.summary;
        let point = (x, [summary.median, summary.min, summary.max]);
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { name, points: vec![point] }),
        }
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    curves
}

/// The path and the contestant.
fn curve_of(record: &Record) -> String {
    format!("{}: {}", record.subject.experiment.name(), record.subject.contestant)
}

fn lines(description: &Description, unit: Unit, label: &str, curves: &[Curve]) -> Drawn {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, CURVES)).into_drawing_area();
        draw_lines(&root, description, unit, label, curves).map_err(|error| error.to_string())?;
        root.present().map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn draw_lines<'a>(
    root: &Area<'a>,
    description: &Description,
    unit: Unit,
    label: &str,
    curves: &[Curve],
) -> Result<(), Failure<'a>> {
    root.fill(&WHITE)?;
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let originals: &[Original] = if unit == Unit::Mpps { description.original } else { &[] };
    let xs = || points().map(|point| point.0);
    let (left, right) = (xs().fold(f64::MAX, f64::min), xs().fold(0.0, f64::max));
    let known = originals.iter().map(|original| original.y);
    let top = points().map(|point| point.1[2]).chain(known).fold(0.0, f64::max);
    let (left, right) = (left.max(0.5) * 0.9, right * 1.1);
    let mut chart = ChartBuilder::on(root)
        .caption(description.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d((left..right).log_scale(), 0.0..(top * 1.05).max(0.01))?;
    chart
        .configure_mesh()
        .x_desc(label)
        .y_desc(unit.to_string())
        .x_label_formatter(&|x| format!("{x:.0}"))
        .light_line_style(WHITE)
        .draw()?;
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let medians = curve.points.iter().map(|&(x, [median, _, _])| (x, median));
        chart
            .draw_series(LineSeries::new(medians.clone(), colour.stroke_width(2)))?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
        chart.draw_series(medians.map(|at| Circle::new(at, 3, colour.filled())))?;
        let ranges = curve.points.iter().map(|&(x, [_, min, max])| [(x, min), (x, max)]);
        chart.draw_series(ranges.map(|range| PathElement::new(range, colour.stroke_width(1))))?;
    }
    let mut named: Vec<&str> = Vec::new();
    for original in originals {
        let Some(x) = original.x.filter(|x| (left..=right).contains(x)) else { continue };
        let cross = chart.draw_series([Cross::new((x, original.y), 6, BLACK.stroke_width(2))])?;
        if !named.contains(&original.what) {
            named.push(original.what);
            cross.label(original.what).legend(|(x, y)| Cross::new((x + 8, y), 5, BLACK));
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.4))
        .draw()?;
    Ok(())
}

fn bars(description: &Description, unit: Unit, records: &[&Record]) -> Drawn {
    let mut svg = String::new();
    {
        let known = if unit == Unit::Mpps { description.original } else { &[] };
        let height = AROUND + BAR * (records.len() + known.len()) as u32;
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        draw_bars(&root, description, unit, records, known).map_err(|error| error.to_string())?;
        root.present().map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

fn draw_bars<'a>(
    root: &Area<'a>,
    description: &Description,
    unit: Unit,
    records: &[&Record],
    known: &[Original],
) -> Result<(), Failure<'a>> {
    root.fill(&WHITE)?;
    let most = records.iter().map(|record| record.summary.max);
    let most = most.chain(known.iter().map(|original| original.y)).fold(0.01, f64::max);
    let all = records.len() + known.len();
    let names: Vec<&str> = records
        .iter()
        .map(|record| record.name.as_str())
        .chain(known.iter().map(|original| original.what))
        .collect();
    let mut chart = ChartBuilder::on(root)
        .caption(description.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(430)
        .build_cartesian_2d(0.0..most * 1.12, (0..all as i32).into_segmented())?;
    let place = |at: i32| all as i32 - 1 - at;
    let name = |segment: &SegmentValue<i32>| match segment {
        SegmentValue::CenterOf(at) => {
            names.get(place(*at) as usize).map_or(String::new(), |name| (*name).to_owned())
        }
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_desc(unit.to_string())
        .y_labels(all)
        .y_label_formatter(&name)
        .draw()?;
    for (at, record) in (0..).zip(records) {
        let (low, high) = (SegmentValue::Exact(place(at)), SegmentValue::Exact(place(at) + 1));
        let middle = SegmentValue::CenterOf(place(at));
        let colour = match record.subject.contestant.is_ringway() {
            true => COLOURS[0],
            false => COLOURS[7],
        };
        let summary = record.summary;
        let mut bar = Rectangle::new([(0.0, low), (summary.median, high)], colour.filled());
        bar.set_margin(4, 4, 0, 0);
        chart.draw_series([bar])?;
        let range = [(summary.min, middle.clone()), (summary.max, middle.clone())];
        chart.draw_series([PathElement::new(range, BLACK.stroke_width(1))])?;
        let figure = Text::new(
            format!("  {:.2}", summary.median),
            (summary.max, middle),
            ("sans-serif", 12),
        );
        chart.draw_series([figure])?;
    }
    for (at, original) in (records.len() as i32..).zip(known) {
        let middle = SegmentValue::CenterOf(place(at));
        chart.draw_series([Cross::new((original.y, middle.clone()), 6, BLACK.stroke_width(2))])?;
        let figure =
            Text::new(format!("    {}", original.y), (original.y, middle), ("sans-serif", 12));
        chart.draw_series([figure])?;
    }
    Ok(())
}
