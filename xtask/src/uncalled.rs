//! Takes functions out of the browser part that the linker has to keep although nothing ever calls them.
//!
//! Leptos reaches the parts of a view through tables of function pointers, and whatever stands in such a table stays in
//! the program. Some of the pointers belong to features that this UI does not use. How one knows that they are
//! not called stands in `docs/adr/0008-functions-that-nobody-calls-are-emptied.md`.

use anyhow::{Context, Result, bail};
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use walrus::ir::{Visitor, dfs_in_order};
use walrus::{FunctionBuilder, FunctionId, FunctionKind, Module, ModuleConfig};

/// Parts of the names of functions, their closures and futures included, that are never called.
const UNCALLED: [&str; 2] = [
    // Taking over a page whose code arrives in parts: `leptos::mount::hydrate_lazy`, while this UI calls `hydrate_body`.
    "hydrate_async",
    // The list of routes that a server asks for: `leptos_router` makes it while it renders to HTML.
    "generate_routes",
];

/// The compiler merges functions that are alike, and the one that is left has the name of any of them. Short ones and
/// destructors are alike by chance, so they stay.
const SHORT: u64 = 40;
const DESTRUCTOR: &str = "drop_in_place";

/// Reads the compiled browser part, with functions that are never called emptied.
pub fn read_without_uncalled(wasm: &Path, keep_names: bool) -> Result<Module> {
    let bytes = fs::read(wasm).with_context(|| format!("cannot read {}", wasm.display()))?;
    let mut module = ModuleConfig::new()
        // The compiler's output is sound, and checking it takes longer than anything else here.
        .strict_validate(false)
        .generate_dwarf(false)
        .generate_name_section(keep_names)
        .generate_producers_section(false)
        .parse(&bytes)
        .with_context(|| format!("{} is no WebAssembly", wasm.display()))?;
    empty_uncalled(&mut module, &UNCALLED).with_context(|| format!("{} is not as expected", wasm.display()))?;
    Ok(module)
}

/// Replaces each function whose name has one of the parts by one that stops the program, unless others call it. What
/// only they called is then called by nobody, and the bindings generator leaves it out.
///
/// Fails when a part names nothing: then the library has changed, and what is written about it no longer holds.
fn empty_uncalled(module: &mut Module, name_parts: &[&str]) -> Result<()> {
    let mut uncalled = HashSet::new();
    for part in name_parts {
        let before = uncalled.len();
        uncalled.extend(functions_named(module, part));
        if uncalled.len() == before {
            bail!(
                "no function has `{part}` in its name: see whether Leptos has renamed it, and correct xtask/src/uncalled.rs"
            );
        }
    }
    spare_called(module, &mut uncalled);
    for function in uncalled {
        empty(module, function);
    }
    Ok(())
}

fn functions_named(module: &Module, part: &str) -> Vec<FunctionId> {
    let named = module.funcs.iter_local().filter(|(id, body)| {
        let name = module.funcs.get(*id).name.as_deref().unwrap_or_default();
        name.contains(part) && !name.contains(DESTRUCTOR) && body.size() >= SHORT
    });
    named.map(|(id, _)| id).collect()
}

/// Takes out what a function that stays calls: the two have been merged with something that is called.
fn spare_called(module: &Module, uncalled: &mut HashSet<FunctionId>) {
    let mut staying: Vec<FunctionId> =
        module.funcs.iter_local().map(|(id, _)| id).filter(|id| !uncalled.contains(id)).collect();
    while let Some(caller) = staying.pop() {
        for called in calls_of(module, caller) {
            if uncalled.remove(&called) {
                staying.push(called);
            }
        }
    }
}

fn calls_of(module: &Module, caller: FunctionId) -> HashSet<FunctionId> {
    struct Calls(HashSet<FunctionId>);

    impl Visitor<'_> for Calls {
        fn visit_function_id(&mut self, called: &FunctionId) {
            self.0.insert(*called);
        }
    }

    let mut calls = Calls(HashSet::new());
    if let FunctionKind::Local(body) = &module.funcs.get(caller).kind {
        dfs_in_order(&mut calls, body, body.entry_block());
    }
    calls.0
}

fn empty(module: &mut Module, function: FunctionId) {
    let kind = module.types.get(module.funcs.get(function).ty());
    let (parameters, results) = (kind.params().to_vec(), kind.results().to_vec());
    let mut stopping = FunctionBuilder::new(&mut module.types, &parameters, &results);
    stopping.func_body().unreachable();
    let arguments = parameters.iter().map(|kind| module.locals.add(*kind)).collect();
    module.funcs.get_mut(function).kind = FunctionKind::Local(stopping.local_func(arguments));
}

#[cfg(test)]
mod tests {
    use super::*;
    use walrus::ir::{Instr, Value};
    use walrus::{ConstExpr, ElementItems, ElementKind, RefType, ValType};

    /// `start` is exported and calls `unused_way::shared`. A table holds `view::unused_way`, which calls
    /// `only_from_there` and `unused_way::shared`.
    fn module() -> Module {
        let mut module = Module::default();
        let shared = add(&mut module, "unused_way::shared", &[]);
        let start = add(&mut module, "start", &[shared]);
        let only_from_there = add(&mut module, "only_from_there", &[]);
        let unused_way = add(&mut module, "view::unused_way", &[only_from_there, shared]);
        let table = module.tables.add_local(false, 1, None, RefType::FUNCREF);
        let place = ConstExpr::Value(Value::I32(0));
        let element = module
            .elements
            .add(ElementKind::Active { table, offset: place }, ElementItems::Functions(vec![unused_way]));
        module.tables.get_mut(table).elem_segments.insert(element);
        module.exports.add("start", start);
        module.exports.add("table", table);
        module
    }

    fn add(module: &mut Module, name: &str, calls: &[FunctionId]) -> FunctionId {
        let mut builder = FunctionBuilder::new(&mut module.types, &[ValType::I32], &[ValType::I32]);
        builder.name(name.to_owned());
        let argument = module.locals.add(ValType::I32);
        let mut body = builder.func_body();
        for called in calls {
            body.local_get(argument).call(*called).drop();
        }
        for _ in 0..SHORT {
            body.local_get(argument).drop();
        }
        body.local_get(argument);
        builder.finish(vec![argument], &mut module.funcs)
    }

    fn names(module: &Module) -> Vec<&str> {
        let mut names: Vec<&str> = module.funcs.iter().filter_map(|function| function.name.as_deref()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_function_that_is_never_called_leaves_with_what_only_it_calls() {
        let mut module = module();
        walrus::passes::gc::run(&mut module);
        assert_eq!(names(&module), ["only_from_there", "start", "unused_way::shared", "view::unused_way"]);

        empty_uncalled(&mut module, &["unused_way"]).unwrap();
        walrus::passes::gc::run(&mut module);

        assert_eq!(names(&module), ["start", "unused_way::shared", "view::unused_way"]);
        assert!(is_empty(&module, "view::unused_way"));
        assert!(!is_empty(&module, "unused_way::shared"), "it is called");
        assert!(Module::from_buffer(&module.emit_wasm()).is_ok(), "what is left is valid");
    }

    fn is_empty(module: &Module, name: &str) -> bool {
        let body = module.funcs.get(module.funcs.by_name(name).unwrap()).kind.unwrap_local();
        matches!(body.block(body.entry_block()).instrs[..], [(Instr::Unreachable(_), _)])
    }

    #[test]
    fn short_functions_and_destructors_stay() {
        let mut module = module();
        let mut short = FunctionBuilder::new(&mut module.types, &[], &[]);
        short.name("view::unused_way::short".to_owned());
        short.finish(Vec::new(), &mut module.funcs);
        add(&mut module, "drop_in_place<view::unused_way>", &[]);
        empty_uncalled(&mut module, &["unused_way"]).unwrap();
        assert!(!is_empty(&module, "view::unused_way::short"));
        assert!(!is_empty(&module, "drop_in_place<view::unused_way>"));
    }

    #[test]
    fn a_name_that_nothing_has_is_an_error() {
        let error = empty_uncalled(&mut module(), &["unused_way", "renamed_since"]).unwrap_err();
        assert!(error.to_string().contains("renamed_since"), "{error}");
    }
}
