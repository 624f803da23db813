//! Keeps one of functions of the browser part that are the same, and puts those that look alike next to each other: then
//! it compresses better.

use anyhow::{Context, Result};
use std::convert::Infallible;
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{CodeSection, FunctionSection, Module};
use wasmparser::{CodeSectionReader, FunctionBody, FunctionSectionReader, Parser, Payload, TypeRef};

/// The same program with its functions in the order of their code, and each of them once.
pub fn sort_functions(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut program = wasm.to_vec();
    loop {
        let mut order = Sorted::of(&program)?;
        let (before, after) = (order.new_places.len(), order.order.len());
        let mut sorted = Module::new();
        order
            .parse_core_module(&mut sorted, Parser::new(0), &program)
            .map_err(|error| anyhow::anyhow!("cannot write the browser part with its functions sorted: {error}"))?;
        program = sorted.finish();
        // functions that called two that were the same may now be the same themselves
        if before == after {
            return Ok(program);
        }
    }
}

struct Sorted {
    /// Functions with lower numbers are imported, and stay where they are.
    imported: u32,
    /// Where each function of the program goes; those that are the same go to one place.
    new_places: Vec<u32>,
    /// Which function comes, in the new order.
    order: Vec<usize>,
}

impl Sorted {
    fn of(wasm: &[u8]) -> Result<Self> {
        let mut imported = 0;
        let mut types = Vec::new();
        let mut bodies = Vec::new();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload.context("the browser part is no WebAssembly")? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                    }
                }
                Payload::FunctionSection(section) => {
                    types = section.into_iter().collect::<Result<Vec<u32>, _>>()?;
                }
                Payload::CodeSectionEntry(body) => bodies.push(body.as_bytes()),
                _ => {}
            }
        }
        let functions: Vec<(&[u8], u32)> = bodies.into_iter().zip(types).collect();
        let mut by_code: Vec<usize> = (0..functions.len()).collect();
        by_code.sort_by_key(|function| functions.get(*function));
        let mut order: Vec<usize> = Vec::new();
        let mut new_places: Vec<(usize, u32)> = Vec::new();
        for function in by_code {
            let is_same = order.last().is_some_and(|last| functions.get(*last) == functions.get(function));
            if !is_same {
                order.push(function);
            }
            new_places.push((function, u32::try_from(order.len() - 1)?));
        }
        new_places.sort_unstable();
        Ok(Self { imported, new_places: new_places.into_iter().map(|(_, place)| place).collect(), order })
    }

    fn in_order<T: Clone>(&self, functions: &[T]) -> Vec<T> {
        self.order.iter().filter_map(|function| functions.get(*function).cloned()).collect()
    }
}

impl Reencode for Sorted {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, Error<Infallible>> {
        let own = function.checked_sub(self.imported).and_then(|own| usize::try_from(own).ok());
        let place = own.and_then(|own| self.new_places.get(own));
        Ok(place.map_or(function, |place| self.imported + place))
    }

    fn parse_function_section(
        &mut self,
        types: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        let found = section.into_iter().collect::<Result<Vec<u32>, _>>()?;
        for kind in self.in_order(&found) {
            types.function(kind);
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        let found = section.into_iter().collect::<Result<Vec<FunctionBody<'_>>, _>>()?;
        for body in self.in_order(&found) {
            self.parse_function_body(code, body)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walrus::ir::Value;
    use walrus::{FunctionBuilder, ValType};

    /// `sum` calls `large`, which calls the imported `given`, and `small`; all are exported.
    fn program() -> Vec<u8> {
        let mut module = walrus::Module::default();
        let kind = module.types.add(&[], &[ValType::I32]);
        let (given, _) = module.add_import_func("here", "given", kind);
        let mut add = |calls: &[walrus::FunctionId], value: i32, name: &str| {
            let mut builder = FunctionBuilder::new(&mut module.types, &[], &[ValType::I32]);
            let mut body = builder.func_body();
            body.const_(Value::I32(value));
            for called in calls {
                body.call(*called).binop(walrus::ir::BinaryOp::I32Add);
            }
            let function = builder.finish(Vec::new(), &mut module.funcs);
            module.exports.add(name, function);
            function
        };
        let small = add(&[], 1, "small");
        let large = add(&[given], 1000, "large");
        add(&[large, small], 9, "sum");
        module.emit_wasm()
    }

    /// What each exported function does: its constant, and the constants of those that it calls.
    fn meaning(wasm: &[u8]) -> Vec<(String, Vec<i32>)> {
        let module = walrus::Module::from_buffer(wasm).unwrap();
        let mut meaning: Vec<(String, Vec<i32>)> = module
            .exports
            .iter()
            .map(|export| {
                let walrus::ExportItem::Function(function) = export.item else { panic!("{}", export.name) };
                (export.name.clone(), constants(&module, function))
            })
            .collect();
        meaning.sort();
        meaning
    }

    fn constants(module: &walrus::Module, function: walrus::FunctionId) -> Vec<i32> {
        let walrus::FunctionKind::Local(body) = &module.funcs.get(function).kind else { return vec![-1] };
        let mut found = Vec::new();
        for (instruction, _) in &body.block(body.entry_block()).instrs {
            match instruction {
                walrus::ir::Instr::Const(constant) => {
                    let Value::I32(value) = constant.value else { panic!("{constant:?}") };
                    found.push(value);
                }
                walrus::ir::Instr::Call(call) => found.extend(constants(module, call.func)),
                _ => {}
            }
        }
        found
    }

    fn bodies(wasm: &[u8]) -> Vec<Vec<u8>> {
        let entries = Parser::new(0).parse_all(wasm).filter_map(|payload| match payload.unwrap() {
            Payload::CodeSectionEntry(body) => Some(body.as_bytes().to_vec()),
            _ => None,
        });
        entries.collect()
    }

    #[test]
    fn functions_are_sorted_and_still_call_each_other() {
        let program = program();
        let sorted = sort_functions(&program).unwrap();
        let (before, after) = (bodies(&program), bodies(&sorted));
        assert!(!before.is_sorted(), "the example would show nothing: {before:?}");
        assert_eq!(meaning(&sorted), meaning(&program));
        assert_eq!(before.len(), after.len());
        assert!(walrus::Module::from_buffer(&sorted).is_ok());
    }

    #[test]
    fn functions_that_are_the_same_are_there_once_and_so_are_their_callers() {
        let mut module = walrus::Module::default();
        let mut add = |calls: &[walrus::FunctionId], result: ValType, name: &str| {
            let mut builder = FunctionBuilder::new(&mut module.types, &[], &[result]);
            let mut body = builder.func_body();
            match result {
                ValType::I64 => body.const_(Value::I64(7)),
                _ => body.const_(Value::I32(7)),
            };
            for called in calls {
                body.call(*called).binop(walrus::ir::BinaryOp::I32Add);
            }
            let function = builder.finish(Vec::new(), &mut module.funcs);
            module.exports.add(name, function);
            function
        };
        let (one, same) = (add(&[], ValType::I32, "one"), add(&[], ValType::I32, "same"));
        add(&[], ValType::I64, "of_another_type");
        add(&[one], ValType::I32, "calls_one");
        add(&[same], ValType::I32, "calls_same");
        let sorted = sort_functions(&module.emit_wasm()).unwrap();
        assert_eq!(bodies(&sorted).len(), 3);
        let module = walrus::Module::from_buffer(&sorted).unwrap();
        let function = |name: &str| {
            let export = module.exports.iter().find(|export| export.name == name).unwrap();
            let walrus::ExportItem::Function(function) = export.item else { panic!("{name}") };
            function
        };
        assert_eq!(function("one"), function("same"));
        assert_eq!(function("calls_one"), function("calls_same"));
        assert_ne!(function("one"), function("of_another_type"));
    }

    #[test]
    fn what_is_no_webassembly_is_an_error() {
        assert!(sort_functions(b"words").is_err());
    }
}
