/** What the tests use of this machine and of the build. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

/** A folder to put first on the PATH of a worker: the stand-in for Huawei's `npu-smi` lies in it. */
export const npuSmiFolder = join(root, 'tests/support');

export function chromium(): string {
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  return required(process.env['CHROMIUM'] ?? onPath(names), 'Chromium is missing: install the package chromium');
}

/** A program of this project, as `cargo xtask test` has built it. */
export function program(name: 'gpustack' | 'fleet'): string {
  const given = process.env[`${name.toUpperCase()}_BIN`];
  const path = given ?? join(targetFolder(), 'debug', name);
  return required(existsSync(path) ? path : undefined, `${path} is missing: run the tests by \`cargo xtask test\``);
}

/** The library that makes a process see another time. */
export function fakeTimeLibrary(): string {
  const folders = ['/usr/lib', ...readdirSync('/usr/lib').map(name => join('/usr/lib', name))];
  const libraries = folders.map(folder => join(folder, 'faketime/libfaketime.so.1'));
  return required(libraries.find(existsSync), 'libfaketime is missing: install the package faketime');
}

function targetFolder(): string {
  const answer = execFileSync('cargo', ['metadata', '--no-deps', '--format-version', '1'], { cwd: root, timeout: 60_000 });
  return (JSON.parse(answer.toString()) as { target_directory: string }).target_directory;
}

function onPath(names: string[]): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return names.flatMap(name => folders.map(folder => join(folder, name))).find(existsSync);
}

function required(path: string | undefined, otherwise: string): string {
  if (path === undefined) throw new Error(otherwise);
  return path;
}
