//! Policies: in which order distributions are tried, and which frame queues each has.

use roxmltree::Node;
use rustix::io::Errno;

use super::{Problem, attribute, elements, number, other_root};

/// What an interface does with received frames: the frame queues that programs are told of, and the steps by which a
/// frame finds its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// First frame queue and number of them, each once.
    pub ranges: Vec<(u32, u32)>,
    /// The frame queue of what no step takes.
    pub default: u32,
    pub steps: Vec<Step>,
}

/// One distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Fields of the key, as in the file: `ipv4.src`.
    pub key: Vec<String>,
    /// Protocols that a frame must have: `udp`.
    pub protocols: Vec<String>,
    pub base: u32,
    pub count: u32,
    /// Of a link: what the key's fields may be, and the distribution of each such value.
    pub entries: Vec<(Vec<u8>, Step)>,
}

impl Step {
    /// Whether it has no frame queues of its own.
    pub fn is_link(&self) -> bool {
        (self.base, self.count) == (1, 1)
    }
}

/// The policy called `name`.
pub fn parse(root: Node<'_, '_>, name: &str) -> Result<Policy, Problem> {
    let is_it = |policy: &Node<'_, '_>| policy.attribute("name").map(str::trim) == Some(name);
    if root.has_tag_name("cfgdata") {
        // A policy that is not there, as the reference has it.
        return Err(Problem {
            errno: Errno::NXIO,
            ..other_root(root, "file of policies", "netpcd")
        });
    }
    let policy = elements(root, "policy").find(is_it).ok_or_else(|| no_policy(root, name))?;
    let order = elements(policy, "dist_order").next().ok_or_else(|| {
        Problem::new(Errno::NXIO, format!("the policy {name} has no <dist_order>"))
    })?;
    // Blank text does not count, and comments do.
    let is_blank =
        |node: &Node<'_, '_>| node.is_text() && node.text().is_none_or(|t| t.trim().is_empty());
    let children: Vec<Node<'_, '_>> = order.children().filter(|node| !is_blank(node)).collect();
    let Some((last, others)) = children.split_last() else {
        return Err(Problem::new(Errno::NXIO, format!("the <dist_order> of {name} is empty")));
    };
    let mut found = Policy::default();
    for child in others {
        let step = step(root, distribution(root, *child, name)?)?;
        match step.is_link() {
            true => step.entries.iter().for_each(|(_, step)| found.add(step)),
            false => found.add(&step),
        }
        found.steps.push(step);
    }
    let default = queue(distribution(root, *last, name)?)?;
    if default.1 != 1 {
        let text = format!("the last distribution of {name} is the default: its count must be 1");
        return Err(Problem::new(Errno::INVAL, text));
    }
    found.default = default.0;
    Ok(found)
}

impl Policy {
    fn add(&mut self, step: &Step) {
        if self.ranges.iter().all(|(base, _)| *base != step.base) {
            self.ranges.push((step.base, step.count));
        }
    }
}

fn no_policy(root: Node<'_, '_>, name: &str) -> Problem {
    let names = elements(root, "policy").filter_map(|policy| policy.attribute("name"));
    let names: Vec<&str> = names.map(str::trim).collect();
    let remedy = match names.as_slice() {
        [] => "it has none".into(),
        [last] => format!("it has {last}"),
        [names @ .., last] => format!("it has {} and {last}", names.join(", ")),
    };
    let problem = missing("policy", name);
    Problem { text: format!("{}: {remedy}", problem.text), ..problem }
}

fn missing(element: &str, name: &str) -> Problem {
    Problem::new(Errno::NXIO, format!("there is no <{element} name=\"{name}\">"))
}

/// The distribution that a child of `dist_order` names.
fn distribution<'a, 'i>(
    root: Node<'a, 'i>,
    child: Node<'a, 'i>,
    policy: &str,
) -> Result<Node<'a, 'i>, Problem> {
    if !child.has_tag_name("distributionref") {
        let text =
            format!("the <dist_order> of {policy} has something else than <distributionref>");
        return Err(Problem::new(Errno::NXIO, text));
    }
    by_prefix(root, "distribution", attribute(child, "name")?)
}

/// The first element whose name begins with `name`.
fn by_prefix<'a, 'i>(
    root: Node<'a, 'i>,
    element: &'a str,
    name: &str,
) -> Result<Node<'a, 'i>, Problem> {
    let begins =
        |node: &Node<'_, '_>| node.attribute("name").is_some_and(|n| n.trim().starts_with(name));
    elements(root, element).find(begins).ok_or_else(|| missing(element, name))
}

/// Base and count of a distribution's frame queues.
fn queue(distribution: Node<'_, '_>) -> Result<(u32, u32), Problem> {
    let name = attribute(distribution, "name")?;
    let queue = elements(distribution, "queue").next().ok_or_else(|| {
        Problem::new(Errno::INVAL, format!("the distribution {name} has no <queue>"))
    })?;
    let (base, count) = (number(queue, "base")?, number(queue, "count")?);
    const FQIDS: u32 = 1 << 24;
    if base == 0 || count == 0 || base.checked_add(count).is_none_or(|end| end > FQIDS) {
        let text = format!("{name}: there are no {count} frame queues from {base:#x} on");
        return Err(Problem::new(Errno::INVAL, text));
    }
    Ok((base, count))
}

fn names(node: Node<'_, '_>, list: &str, element: &str) -> Vec<String> {
    let lists = node.children().filter(|child| child.has_tag_name(list));
    let items = lists.flat_map(|list| list.children());
    let items = items.filter(|item| item.has_tag_name(element));
    items.filter_map(|item| item.attribute("name")).map(|name| name.trim().into()).collect()
}

fn step(root: Node<'_, '_>, distribution: Node<'_, '_>) -> Result<Step, Problem> {
    let (base, count) = queue(distribution)?;
    let mut step = Step {
        key: names(distribution, "key", "fieldref"),
        protocols: names(distribution, "protocols", "protocolref"),
        base,
        count,
        entries: Vec::new(),
    };
    if step.is_link() {
        follow(root, distribution, &mut step)?;
    }
    Ok(step)
}

/// A link goes on to a classification, whose entries go on to distributions.
fn follow(root: Node<'_, '_>, link: Node<'_, '_>, step: &mut Step) -> Result<(), Problem> {
    let action = elements(link, "action").next();
    let name = action.map(|action| attribute(action, "name")).transpose()?;
    let Some(name) = name else { return Ok(()) };
    let classification = by_prefix(root, "classification", name)?;
    let key = names(classification, "key", "fieldref");
    if !key.is_empty() {
        step.key = key;
    }
    for entry in elements(classification, "entry") {
        let value = elements(entry, "data").next().and_then(|data| data.text()).unwrap_or_default();
        let actions = elements(entry, "action").filter_map(|action| action.attribute("name"));
        for target in actions.map(str::trim).filter(|name| name.starts_with("usdpaa_dist")) {
            let target = by_prefix(root, "distribution", target)?;
            let (base, count) = queue(target)?;
            let key = names(target, "key", "fieldref");
            let target = Step { key, base, count, ..Step::default() };
            step.entries.push((bytes(value.trim())?, target));
        }
    }
    Ok(())
}

/// The bytes that hexadecimal digits stand for.
fn bytes(text: &str) -> Result<Vec<u8>, Problem> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let digits = if digits.len().is_multiple_of(2) { digits.into() } else { format!("0{digits}") };
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect::<Option<Vec<u8>>>().ok_or_else(|| {
        Problem::new(Errno::INVAL, format!("<data>{text}</data> is no hexadecimal number"))
    })
}
