/** A program that a test started, with what it printed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';

const stopLimitMs = 15_000;

export interface Start {
  command: string;
  args: string[];
  env?: Record<string, string>;
  cwd?: string;
}

export class Program {
  readonly #child: ChildProcess;
  readonly #name: string;
  #output = '';
  #waiting: (() => void)[] = [];

  constructor({ command, args, env, cwd }: Start) {
    this.#name = [command.split('/').at(-1), ...args.slice(0, 2)].join(' ');
    this.#child = spawn(command, args, {
      cwd,
      env: { ...cleanEnvironment(), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      // so that what it started in turn can be ended with it
      detached: true,
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
        this.#wake();
      });
    }
    this.#child.on('error', error => {
      this.#output += `${error.message}\n`;
      this.#wake();
    });
    this.#child.on('exit', () => this.#wake());
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error(`${this.#name} did not start: ${this.#output}`);
    return this.#child.pid;
  }

  get output(): string {
    return this.#output;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined;
  }

  /** Waits until the output matches, and gives the match. */
  async printed(pattern: RegExp, limitMs = 30_000): Promise<RegExpExecArray> {
    const deadline = Date.now() + limitMs;
    for (;;) {
      const match = pattern.exec(this.#output);
      if (match !== null) return match;
      const left = deadline - Date.now();
      if (this.hasEnded || left <= 0) {
        const how = this.hasEnded ? 'ended without printing' : `did not print within ${limitMs / 1000} s`;
        throw new Error(`${this.#name} ${how} ${pattern}; it printed:\n${this.#output}`);
      }
      await this.#change(left);
    }
  }

  /** Asks it to end, and waits for that. */
  async stop(): Promise<void> {
    this.#child.stdin?.end();
    await this.#end('SIGTERM');
  }

  /** Ends it as `kill -9` does. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Ends it and what it has started, also what has a process group of its own. */
  async killWithChildren(): Promise<void> {
    const children = this.hasEnded ? [] : await childrenOf(this.pid);
    await this.kill();
    for (const child of children) endProcess(child);
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (this.hasEnded) return;
    const exited = once(this.#child, 'exit');
    this.#signal(signal);
    const timer = setTimeout(() => this.#signal('SIGKILL'), stopLimitMs);
    await exited;
    clearTimeout(timer);
    if (this.#child.signalCode === 'SIGKILL' && signal === 'SIGTERM') {
      throw new Error(`${this.#name} did not end within ${stopLimitMs / 1000} s; it printed:\n${this.#output}`);
    }
  }

  /** To it and to all that it started. */
  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (!this.hasEnded) process.kill(-this.pid, signal);
  }

  #change(limitMs: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, limitMs);
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** The processes that a process has started and that still run. */
export async function childrenOf(pid: number): Promise<number[]> {
  const all = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number);
  const parents = await Promise.all(all.map(parentOf));
  return all.filter((_, place) => parents[place] === pid);
}

/** Undefined for a process that has ended meanwhile. */
async function parentOf(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const [, parent] = /^PPid:\s+(\d+)/m.exec(status) ?? [];
  return parent === undefined ? undefined : Number(parent);
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended by itself
  }
}

/** Settings of the one who runs the tests must not reach the tested programs. */
function cleanEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(GPUSTACK|FLEET)_/.test(entry[0]),
  );
  return Object.fromEntries(entries);
}
