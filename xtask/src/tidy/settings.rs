//! Settings that are read refuse fields that they do not know: a misspelt option would be ignored otherwise.

/// The crates that read files of data and of results, which may hold more than is read.
const OF_FILES: [&str; 5] = ["bench", "datasets", "golden", "report", "reproduce"];

/// The breaches of one file of a crate, each with the line of its type.
///
/// A type is held to the rule if it derives `Deserialize` and has named fields, itself or in a variant, and if it is public
/// or a public type is read through it.
pub(super) fn breaches(name: &str, text: &str) -> Vec<String> {
    if OF_FILES.contains(&name) {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut breaches = Vec::new();
    let mut attributes = String::new();
    for (number, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some(item) = Item::new(code) else {
            // Attributes may span lines; everything else ends them.
            let belongs = code.starts_with(['#', ')', ']', '}']) || is_inside(&attributes);
            if belongs && !code.starts_with("//") {
                attributes.push_str(code);
            } else if !code.starts_with("//") {
                attributes.clear();
            }
            continue;
        };
        let indent = &line[..line.len() - code.len()];
        let body = lines[number + 1..].iter().copied();
        let body = body.take_while(|line| *line != format!("{indent}}}"));
        let is_read = attributes.contains("Deserialize")
            && !["try_from", "transparent", "untagged", "deny_unknown_fields"]
                .iter()
                .any(|other| attributes.contains(other));
        let is_held = item.is_public || text.contains(&format!("try_from = \"{}", item.name));
        if is_read && is_held && item.has_fields(code, body) {
            breaches.push(format!(
                ":{}: `{}` is read without `deny_unknown_fields`",
                number + 1,
                item.name
            ));
        }
        attributes.clear();
    }
    breaches
}

/// Whether an attribute is still open.
fn is_inside(attributes: &str) -> bool {
    attributes.matches('[').count() > attributes.matches(']').count()
}

/// The head of a struct or an enum.
struct Item<'a> {
    name: &'a str,
    is_public: bool,
    is_enum: bool,
}

impl<'a> Item<'a> {
    fn new(code: &'a str) -> Option<Self> {
        let (is_public, item) = match code.strip_prefix("pub ") {
            Some(item) => (true, item),
            None => (false, code),
        };
        let kinds = [("struct ", false), ("enum ", true)];
        let (item, is_enum) = kinds
            .into_iter()
            .find_map(|(kind, is_enum)| Some((item.strip_prefix(kind)?, is_enum)))?;
        let name = item.split(|c: char| !c.is_alphanumeric()).next()?;
        Some(Self {
            name,
            is_public,
            is_enum,
        })
    }

    /// Whether the item has named fields, an enum in one of its variants.
    fn has_fields<'b>(&self, head: &str, mut body: impl Iterator<Item = &'b str>) -> bool {
        if !self.is_enum {
            return head.ends_with('{');
        }
        body.any(|line| {
            let line = line.trim();
            let is_variant = line.starts_with(|c: char| c.is_uppercase());
            is_variant && line.contains('{')
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(attribute: &str, item: &str) -> usize {
        let text = format!("#[derive(Clone, Deserialize)]\n{attribute}\n/// Words.\n{item}\n}}\n");
        breaches("nn", &text).len()
    }

    #[test]
    fn named_fields_that_are_read_need_the_attribute() {
        let fields = "pub struct Config {\n    pub width: usize,";
        let variant = "pub enum Rule {\n    Never,\n    Every { steps: u64 },";
        for item in [fields, variant] {
            assert_eq!(found("#[serde(rename_all = \"kebab-case\")]", item), 1);
            assert_eq!(found("#[serde(default, deny_unknown_fields)]", item), 0);
            assert_eq!(
                found("#[serde(\n    default,\n    deny_unknown_fields\n)]", item),
                0
            );
            assert_eq!(found("#[serde(try_from = \"Written\")]", item), 0);
        }
        for item in [
            "pub struct Seed(u64);\n{",
            "pub enum Case {\n    Upper,\n    Of(Seed),",
            "struct Private {\n    width: usize,",
        ] {
            assert_eq!(found("", item), 0, "{item}");
        }
    }

    #[test]
    fn a_type_that_another_is_read_through_is_held_too() {
        let public =
            "#[serde(try_from = \"Written\")]\npub enum Kernel {\n    One { p: f64 },\n}\n";
        let private = "#[derive(Deserialize)]\nenum Written {\n    One { p: f64 },\n}\n";
        let text = format!("#[derive(Deserialize)]\n{public}{private}");
        let want = ":7: `Written` is read without `deny_unknown_fields`";
        assert_eq!(breaches("graph", &text), [want]);
        assert!(breaches("report", &text).is_empty());
    }
}
