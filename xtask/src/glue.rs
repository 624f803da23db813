//! Makes what stands between the program and the browser smaller: short names on both sides, and no bindings that nobody
//! uses. The generator's names say what they bind, with a hash, twice: in the program and in the script.

use anyhow::{Context, Result, ensure};
use std::collections::{BTreeSet, HashMap};
use walrus::ModuleConfig;

/// Classes that a library offers to the scripts of a page, which here has none. Leptos brings them for server functions
/// that stream.
const UNUSED: &str = "IntoUnderlying";
/// Names that others know: the memory is read by the script under this name, and the page's own script calls the other.
const KNOWN_OUTSIDE: [&str; 2] = ["memory", "hydrate"];
/// What the generator calls the module that the program imports from, and what it is called afterwards.
const MODULE: (&str, &str) = ("./app_bg.js", "$");

/// The program and its script, both smaller.
pub fn shrink(program: &[u8], script: &str) -> Result<(Vec<u8>, String)> {
    let mut module = ModuleConfig::new()
        .strict_validate(false)
        .generate_producers_section(false)
        .generate_name_section(false)
        .parse(program)
        .context("wasm-bindgen made no WebAssembly")?;
    let unused: Vec<_> =
        module.exports.iter().filter(|export| is_unused(&export.name)).map(walrus::Export::id).collect();
    ensure!(!unused.is_empty(), "nothing is called `{UNUSED}` any more: see whether xtask/src/glue.rs is still needed");
    for export in unused {
        module.exports.delete(export);
    }
    walrus::passes::gc::run(&mut module);
    let without = without_unused(script, &imported(&module));
    ensure!(
        depth(&without) == depth(script),
        "wasm-bindgen writes its script otherwise than xtask/src/glue.rs expects"
    );
    let script = without;
    let names = short_names(&module, &script);
    for import in module.imports.iter_mut() {
        rename(&names, &mut import.name);
        MODULE.1.clone_into(&mut import.module);
    }
    for export in module.exports.iter_mut() {
        rename(&names, &mut export.name);
    }
    let script = renamed(&script, &names).replace(&format!("\"{}\"", MODULE.0), &format!("\"{}\"", MODULE.1));
    Ok((module.emit_wasm(), script))
}

/// How many braces more are opened than closed.
fn depth(script: &str) -> isize {
    script.chars().fold(0, |depth, c| depth + isize::from(c == '{') - isize::from(c == '}'))
}

fn is_unused(export: &str) -> bool {
    export.contains(&UNUSED.to_lowercase())
}

fn imported(module: &walrus::Module) -> BTreeSet<&str> {
    module.imports.iter().map(|import| import.name.as_str()).collect()
}

/// The script without the unused classes, and without functions that the program does not import any more. The generator
/// begins each statement and each function of the imported object on a line of its own, and ends it before the next.
fn without_unused(script: &str, imported: &BTreeSet<&str>) -> String {
    let mut kept = String::new();
    let (mut statement_is_kept, mut function_is_kept) = (true, true);
    for line in script.lines() {
        let begins_statement = line.starts_with(|first: char| !first.is_whitespace() && first != '}');
        if begins_statement {
            (statement_is_kept, function_is_kept) = (!line.contains(UNUSED), true);
        } else if let Some(function) = imported_function(line) {
            function_is_kept = imported.contains(function);
        } else if line.starts_with("    }") {
            // the end of the imported object
            function_is_kept = true;
        }
        if statement_is_kept && function_is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The name, when a function of the imported object begins on this line.
fn imported_function(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("        __wb")?.split_once(": ")?;
    let is_name = rest.starts_with("function") && name.chars().all(is_of_identifier);
    is_name.then(|| &line.trim_start()[.."__wb".len() + name.len()])
}

/// A short name for each that both sides use and nobody else knows, and for the script's own long ones.
fn short_names(module: &walrus::Module, script: &str) -> HashMap<String, String> {
    let shared = module.imports.iter().map(|import| import.name.as_str());
    let shared = shared.chain(module.exports.iter().map(|export| export.name.as_str()));
    let own = identifiers(script).filter(|(_, word)| word.starts_with("wasm_bindgen_")).map(|(_, word)| word);
    let long: BTreeSet<&str> = shared.chain(own).filter(|name| !KNOWN_OUTSIDE.contains(name)).collect();
    // no other identifier of the script begins so
    long.into_iter().enumerate().map(|(number, name)| (name.to_owned(), format!("${number:x}"))).collect()
}

fn rename(names: &HashMap<String, String>, name: &mut String) {
    if let Some(short) = names.get(name) {
        short.clone_into(name);
    }
}

fn renamed(script: &str, names: &HashMap<String, String>) -> String {
    let mut written = String::new();
    let mut copied = 0;
    for (at, word) in identifiers(script) {
        if let Some(short) = names.get(word) {
            written.push_str(&script[copied..at]);
            written.push_str(short);
            copied = at + word.len();
        }
    }
    written.push_str(&script[copied..]);
    written
}

fn is_of_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

/// All words, and where they begin.
fn identifiers(script: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = script;
    std::iter::from_fn(move || {
        let begin = rest.find(is_of_identifier)?;
        let word = &rest[begin..];
        let word = &word[..word.find(|c| !is_of_identifier(c)).unwrap_or(word.len())];
        let at = script.len() - rest.len() + begin;
        rest = &script[at + word.len()..];
        Some((at, word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use walrus::{FunctionBuilder, Module, ValType};

    const SCRIPT: &str = "\
export class IntoUnderlyingSink {
    close() {
        wasm.intounderlyingsink_close(this.ptr);
    }
}
if (Symbol.dispose) IntoUnderlyingSink.prototype[Symbol.dispose] = 1;
export function hydrate() {
    wasm.hydrate();
    wasm_bindgen_27___invoke(1);
}
function __wbg_get_imports() {
    const import0 = {
        __proto__: null,
        __wbg_given_12ab: function(arg0) {
            return arg0 + wasm.__wbindgen_malloc(1);
        },
        __wbg_close_34cd: function(arg0) {
            arg0.close();
        },
        __wbindgen_cast_0001: function(arg0) {
            return arg0;
        },
    };
    return {
        __proto__: null,
        \"./app_bg.js\": import0,
    };
}
function wasm_bindgen_27___invoke(arg0) {
    wasm.wasm_bindgen__invoke__h01(arg0);
}
const IntoUnderlyingSinkFinalization = (typeof FinalizationRegistry === 'undefined')
    ? {}
    : new FinalizationRegistry(ptr => wasm.__wbg_intounderlyingsink_free(ptr, 1));
let wasm;
";

    /// `hydrate` uses two imported functions; `intounderlyingsink_close` uses a third.
    fn program() -> Vec<u8> {
        let mut module = Module::default();
        let kind = module.types.add(&[ValType::I32], &[ValType::I32]);
        let mut import = |name| module.add_import_func(MODULE.0, name, kind).0;
        let (given, cast, close) =
            (import("__wbg_given_12ab"), import("__wbindgen_cast_0001"), import("__wbg_close_34cd"));
        let exported: [(&str, &[walrus::FunctionId]); 5] = [
            ("hydrate", &[given, cast]),
            ("__wbindgen_malloc", &[]),
            ("wasm_bindgen__invoke__h01", &[]),
            ("intounderlyingsink_close", &[close]),
            ("__wbg_intounderlyingsink_free", &[]),
        ];
        for (name, calls) in exported {
            let mut builder = FunctionBuilder::new(&mut module.types, &[ValType::I32], &[ValType::I32]);
            let argument = module.locals.add(ValType::I32);
            let mut body = builder.func_body();
            body.local_get(argument);
            for called in calls {
                body.call(*called);
            }
            let function = builder.finish(vec![argument], &mut module.funcs);
            module.exports.add(name, function);
        }
        module.emit_wasm()
    }

    #[test]
    fn both_sides_have_the_same_short_names() {
        let (program, script) = shrink(&program(), SCRIPT).unwrap();
        let module = Module::from_buffer(&program).unwrap();
        for import in module.imports.iter() {
            assert_eq!(import.module, "$");
            assert!(
                script.contains(&format!("        {}: function(arg0) {{", import.name)),
                "{}: {script}",
                import.name
            );
        }
        for export in module.exports.iter() {
            assert!(script.contains(&format!("wasm.{}(", export.name)), "{}: {script}", export.name);
        }
        assert!(script.contains("wasm.hydrate()") && script.contains("\"$\": import0"), "{script}");
        assert!(!script.contains("wasm_bindgen_") && !script.contains("__wbindgen"), "{script}");
    }

    #[test]
    fn what_nobody_uses_leaves_both_sides() {
        let (program, script) = shrink(&program(), SCRIPT).unwrap();
        let module = Module::from_buffer(&program).unwrap();
        assert_eq!((module.imports.iter().count(), module.exports.iter().count()), (2, 3));
        assert!(
            !script.contains("close") && !script.contains("Underlying") && !script.contains("Finalization"),
            "{script}"
        );
        let without = script.lines().count();
        assert_eq!(SCRIPT.lines().count() - without, 12, "{script}");
    }

    #[test]
    fn a_library_that_has_changed_is_an_error() {
        assert!(shrink(&Module::default().emit_wasm(), SCRIPT).is_err());
    }

    #[test]
    fn words_are_found_whole() {
        let names = HashMap::from([("__wbg_a".to_owned(), "$0".to_owned())]);
        assert_eq!(renamed("wasm.__wbg_a(__wbg_ab); é__wbg_a", &names), "wasm.$0(__wbg_ab); é$0");
    }
}
