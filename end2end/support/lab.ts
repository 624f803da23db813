/** Real servers, workers and fleets for one test, all ended with it. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fakeTimeLibrary, npuSmiFolder, program } from './machine.ts';
import { type PlayedStatus, PlayedWorker } from './played-worker.ts';
import { Program } from './program.ts';

/** For the tests that are not about the first password. */
export const adminPassword = 'Granite-Harbour-42';

/** How the stand-in for `npu-smi` behaves. */
export type NpuSmiMode = 'normal' | 'hang' | 'error' | 'unhealthy';

/** A clock as libfaketime takes it: `+3m`, `-8h`, `@1970-01-01 00:00:10`. */
export type FakeClock = string;

export interface ServerOptions {
  args?: string[];
  /** Without it the server makes a first password. */
  password?: string | null;
  /** The state of an earlier server. */
  dataDir?: string;
  port?: number;
  /** A file that holds a clock, which can be set while the server runs. */
  clockFile?: string;
}

export interface WorkerOptions {
  name: string;
  /** The state of an earlier worker. */
  dataDir?: string;
  port?: number;
  clock?: FakeClock;
  npuSmi?: NpuSmiMode;
  args?: string[];
}

export interface Server {
  program: Program;
  url: string;
  port: number;
  dataDir: string;
  /** Reads a file of its data dir, without the line's end. */
  file(name: string): Promise<string>;
}

export interface Worker {
  program: Program;
  port: number;
  dataDir: string;
  setNpuSmi(mode: NpuSmiMode): Promise<void>;
}

export class Lab {
  readonly #folder: string;
  readonly #programs: { name: string; program: Program }[] = [];
  readonly #played: PlayedWorker[] = [];
  #folders = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(): Promise<Lab> {
    return new Lab(await mkdtemp(join(tmpdir(), 'gpustack-test-')));
  }

  /** Ends everything and removes it. Gives what the programs printed. */
  async close(): Promise<{ name: string; output: string }[]> {
    await Promise.all(this.#programs.map(({ program }) => program.killWithChildren()));
    await Promise.all(this.#played.map(worker => worker.close()));
    await rm(this.#folder, { recursive: true, force: true });
    return this.#programs.map(({ name, program }) => ({ name, output: program.output }));
  }

  /** Starts a server without a worker, and waits until it says where it is. */
  async server(options: ServerOptions = {}): Promise<Server> {
    const dataDir = options.dataDir ?? (await this.folder());
    const password = options.password === undefined ? adminPassword : options.password;
    const args = ['start', '--port', String(options.port ?? 0), '--data-dir', dataDir, '--disable-worker'];
    args.push(...(options.args ?? []));
    const env: Record<string, string> = {};
    if (options.clockFile !== undefined) Object.assign(env, fakeTime({ FAKETIME_TIMESTAMP_FILE: options.clockFile }));
    if (password !== null) env['GPUSTACK_BOOTSTRAP_PASSWORD'] = password;
    const started = this.start('server', { command: program('gpustack'), args, env });
    const [, port] = await started.printed(/Address +http:\/\/127\.0\.0\.1:(\d+)/);
    const file = async (name: string) => (await readFile(join(dataDir, name), 'utf8')).trim();
    return { program: started, url: `http://127.0.0.1:${port}`, port: Number(port), dataDir, file };
  }

  /** Starts a worker with eight stand-in NPUs. */
  async worker(server: Server, options: WorkerOptions): Promise<Worker> {
    const port = options.port ?? (await freePort());
    const dataDir = options.dataDir ?? (await this.folder());
    const { env, setNpuSmi } = await this.hostWithNpus(options.npuSmi ?? 'normal');
    const args = ['start', '--server-url', server.url, '--worker-name', options.name, '--worker-ip', '127.0.0.1'];
    args.push('--worker-port', String(port), '--data-dir', dataDir, ...(options.args ?? []));
    env['GPUSTACK_TOKEN'] = await server.file('token');
    if (options.clock !== undefined) Object.assign(env, fakeTime({ FAKETIME: options.clock }));
    return { program: this.start('worker', { command: program('gpustack'), args, env }), port, dataDir, setNpuSmi };
  }

  /** The environment of a host with eight NPUs. */
  async hostWithNpus(mode: NpuSmiMode): Promise<{ env: Record<string, string>; setNpuSmi: (mode: NpuSmiMode) => Promise<void> }> {
    const modeFile = join(await this.folder(), 'npu-smi-mode');
    const setNpuSmi = (next: NpuSmiMode) => writeFile(modeFile, next);
    await setNpuSmi(mode);
    const path = [npuSmiFolder, process.env['PATH']].join(delimiter);
    return { env: { PATH: path, NPU_SMI_MODE_FILE: modeFile }, setNpuSmi };
  }

  /** Plays many workers until the test ends, and waits until all have joined. */
  async fleet(server: Server, workers: number, args: string[] = []): Promise<Program> {
    const token = await server.file('token');
    const all = ['--server', server.url, '--workers', String(workers), '--hold', '--duration', '600', ...args];
    const fleet = this.start('fleet', { command: program('fleet'), args: all, env: { FLEET_TOKEN: token } });
    await fleet.printed(new RegExp(`^${workers} workers have joined`, 'm'), 60_000);
    return fleet;
  }

  /** Lets a worker join whose devices the test makes up. */
  async played(server: Server, name: string, status: PlayedStatus): Promise<PlayedWorker> {
    const worker = await PlayedWorker.join(server, name, status);
    this.#played.push(worker);
    return worker;
  }

  /** Starts any program. */
  start(name: string, start: ConstructorParameters<typeof Program>[0]): Program {
    const started = new Program(start);
    this.#programs.push({ name, program: started });
    return started;
  }

  /** A new empty folder. */
  async folder(): Promise<string> {
    this.#folders += 1;
    const folder = join(this.#folder, String(this.#folders));
    await mkdir(folder);
    return folder;
  }
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise(resolve => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return address.port;
}

/** Only the clock on the wall is wrong: time goes by as it should. */
function fakeTime(clock: { FAKETIME: FakeClock } | { FAKETIME_TIMESTAMP_FILE: string }): Record<string, string> {
  return {
    ...clock,
    LD_PRELOAD: fakeTimeLibrary(),
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    FAKETIME_NO_CACHE: '1',
    // what an absolute time is meant in
    TZ: 'UTC',
  };
}
