//! Whether a JSON value is as a schema says, of the keywords that Ringway's schemas have; another keyword fails the test.

use regex_automata::nfa::thompson::pikevm::PikeVM;
use serde_json::{Value, json};

/// Checks a value against a schema.
///
/// # Errors
///
/// Says which rule it breaks, and where.
pub fn check_json(schema: &Value, value: &Value) -> Result<(), String> {
    Check { root: schema }.value(schema, value, "")
}

/// The same schema for tests: it refuses fields that it does not have, which programs ignore.
pub fn closed_schema(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(rules) => {
            rules.values_mut().for_each(|rule| *rule = closed_schema(rule.take()));
            // A list of rules, not a list of fields that has one called `properties`.
            if rules.get("properties").is_some_and(Value::is_object) {
                rules.entry("additionalProperties").or_insert(json!(false));
            }
        }
        Value::Array(rules) => rules.iter_mut().for_each(|rule| *rule = closed_schema(rule.take())),
        _ => {}
    }
    schema
}

struct Check<'a> {
    root: &'a Value,
}

impl Check<'_> {
    fn value(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        match schema {
            Value::Object(rules) => rules.keys().try_for_each(|name| {
                self.rule(name, schema, value, at).map_err(|problem| match problem.is_empty() {
                    true => format!("{at}: {value} breaks {name}: {}", rules[name]),
                    false => problem,
                })
            }),
            Value::Bool(true) => Ok(()),
            _ => Err(format!("{at} is not in the schema")),
        }
    }

    /// Checks one rule of a schema. Without a text the problem is the rule itself.
    fn rule(&self, name: &str, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let rule = &schema[name];
        let number = || rule.as_u64().unwrap();
        let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
        let has_all = |names: &Value| names.as_array().unwrap().iter().all(has);
        let length = value.as_array().map(|items| items.len() as u64);
        let letters = value.as_str().map(|text| text.chars().count() as u64);
        let good = match name {
            "$schema" | "$id" | "$defs" | "title" | "description" | "default" | "format" => true,
            "$ref" => {
                let place = rule.as_str().unwrap().strip_prefix('#').unwrap();
                return self.value(self.root.pointer(place).unwrap(), value, at);
            }
            "type" => {
                let types = rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice);
                types.iter().any(|name| is_of_type(value, name.as_str().unwrap()))
            }
            "enum" => rule.as_array().unwrap().contains(value),
            "const" => rule == value,
            "pattern" => value.as_str().is_none_or(|text| {
                let pattern = PikeVM::new(rule.as_str().unwrap()).unwrap();
                pattern.is_match(&mut pattern.create_cache(), text)
            }),
            "minimum" => value.as_f64().is_none_or(|it| it >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|it| it <= rule.as_f64().unwrap()),
            "maxLength" => letters.is_none_or(|count| count <= number()),
            "minItems" => length.is_none_or(|count| count >= number()),
            "maxItems" => length.is_none_or(|count| count <= number()),
            "required" => !value.is_object() || has_all(rule),
            "dependentRequired" => members(rule, value).all(|(_, names, _)| has_all(names)),
            "not" => self.value(rule, value, at).is_err(),
            "items" | "prefixItems" => {
                let first = schema["prefixItems"].as_array().map_or(&[][..], Vec::as_slice);
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                return items.iter().enumerate().try_for_each(|(i, item)| {
                    let rule = first.get(i).or(schema.get("items"));
                    rule.map_or(Ok(()), |rule| self.value(rule, item, &format!("{at}[{i}]")))
                });
            }
            "properties" => {
                return members(rule, value).try_for_each(|(name, rule, value)| {
                    self.value(rule, value, &format!("{at}.{name}"))
                });
            }
            "additionalProperties" => {
                let others = value.as_object().into_iter().flatten();
                let mut others =
                    others.filter(|(name, _)| schema["properties"].get(*name).is_none());
                return others.try_for_each(|(name, value)| {
                    self.value(rule, value, &format!("{at}.{name}"))
                });
            }
            "dependentSchemas" => {
                return members(rule, value)
                    .try_for_each(|(_, schema, _)| self.value(schema, value, at));
            }
            "oneOf" | "anyOf" => return self.alternatives(name, rule, value, at),
            other => panic!("the schema has {other}"),
        };
        if good { Ok(()) } else { Err(String::new()) }
    }

    /// Of several, tells what is wrong with those that have the value's `type`.
    fn alternatives(
        &self,
        name: &str,
        rule: &Value,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let schemas = rule.as_array().unwrap();
        let problems: Vec<String> =
            schemas.iter().filter_map(|schema| self.value(schema, value, at).err()).collect();
        match schemas.len() - problems.len() {
            1 => Ok(()),
            0 => {
                let kind = format!("{at}.type: ");
                let near = problems.iter().filter(|problem| !problem.starts_with(&kind));
                let near: Vec<_> = near.map(String::as_str).collect();
                Err(format!("{at}: {value} is none of these: {}", near.join("; ")))
            }
            _ if name == "anyOf" => Ok(()),
            several => Err(format!("{at}: {value} is {several} of what it may be one of")),
        }
    }
}

/// Of each member that a value has, and a list of rules names: the name, the rule, and the member.
fn members<'a>(
    rules: &'a Value,
    value: &'a Value,
) -> impl Iterator<Item = (&'a String, &'a Value, &'a Value)> {
    let rules = rules.as_object().unwrap().iter();
    rules.filter_map(|(name, rule)| Some((name, rule, value.get(name)?)))
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_that_is_broken_is_told() {
        let schema = json!({
            "oneOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/b" }],
            "$defs": {
                "a": {
                    "type": "object",
                    "properties": {
                        "type": { "const": "a" },
                        "list": {
                            "type": "array",
                            "prefixItems": [{ "type": "string" }, { "type": "integer", "minimum": 0 }],
                            "maxItems": 2,
                        },
                    },
                    "required": ["type", "list"],
                },
                "b": { "type": "object", "properties": { "type": { "const": "b" } }, "required": ["type"] },
            },
        });
        for (value, told) in [
            (json!({ "type": "a", "list": ["x", 1], "more": 1 }), None),
            (json!({ "type": "b" }), None),
            (json!({ "type": "c" }), Some("none of these: ")),
            (json!({ "type": "a" }), Some("breaks required")),
            (json!({ "type": "a", "list": 1 }), Some(".list: 1 breaks type")),
            (json!({ "type": "a", "list": [1] }), Some(".list[0]: 1 breaks type")),
            (json!({ "type": "a", "list": ["x", -1] }), Some(".list[1]: -1 breaks minimum")),
            (json!({ "type": "a", "list": ["x", 1, 1] }), Some("breaks maxItems")),
            (json!([]), Some("")),
        ] {
            match (check_json(&schema, &value), told) {
                (Ok(()), None) => {}
                (Err(problem), Some(told)) => assert!(problem.contains(told), "{value}: {problem}"),
                (result, _) => panic!("{value}: {result:?}"),
            }
        }
        let closed = closed_schema(schema);
        let more = json!({ "type": "b", "more": 1 });
        let problem = check_json(&closed, &more).unwrap_err();
        assert!(problem.contains(".more is not in the schema"), "{problem}");
    }
}
