/** A tunnel agent whose forwards the test makes up, over a real link: the load program plays it. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lab, Server } from './lab.ts';
import { program } from './machine.ts';
import type { Program } from './program.ts';

export interface Fault {
  hop?: string;
  reason: string;
  params: Record<string, unknown>;
}

export interface Forward {
  id: string;
  role: 'server_here' | 'server_at_worker' | 'worker_here' | 'worker_at_server' | 'other';
  direction: 'local' | 'remote';
  workers: string[];
  listen: string;
  target: string;
  route: string[];
  state: 'starting' | 'up' | 'unproved' | 'degraded' | 'down';
  state_age_ms: number;
  fault?: Fault;
  round_trip_ms?: number;
  to_target_bytes: number;
  from_target_bytes: number;
  open_connections: number;
  reconnects: number;
  availability: { day: number | null; week: number | null; month: number | null };
  cuts: { began_ago_ms: number; lasted_ms: number | null; fault: Fault }[];
}

export interface Certificate {
  key_file: string;
  public_key: string;
  certificate?: {
    key_id: string;
    serial: number;
    principals: string[];
    authority: string;
    valid_after_ms: number;
    valid_before_ms?: number;
  };
}

export interface Report {
  place: { place: 'bastion' | 'server' } | { place: 'worker'; worker: string };
  forwards: Forward[];
  certificates: Certificate[];
  refused_config?: string;
}

export class PlayedAgent {
  readonly #file: string;
  readonly #name: string;
  readonly #start: () => Program;
  #program: Program;

  private constructor(file: string, name: string, start: () => Program) {
    this.#file = file;
    this.#name = name;
    this.#start = start;
    this.#program = start();
  }

  static async join(lab: Lab, server: Server, name: string, report: Report): Promise<PlayedAgent> {
    const file = join(await lab.folder(), 'report.json');
    await write(file, name, report);
    const token = await server.file('token');
    const args = ['--server', server.url, '--duration', '600', '--tunnels', file];
    const start = () => lab.start(`agent ${name}`, { command: program('fleet'), args, env: { FLEET_TOKEN: token } });
    const agent = new PlayedAgent(file, name, start);
    await agent.#program.printed(/has joined/);
    return agent;
  }

  /** Tells what it sees now. */
  async report(report: Report): Promise<void> {
    await write(this.#file, this.#name, report);
  }

  async vanish(): Promise<void> {
    await this.#program.kill();
  }

  async comeBack(): Promise<void> {
    this.#program = this.#start();
    await this.#program.printed(/has joined/);
  }
}

async function write(file: string, name: string, report: Report): Promise<void> {
  await writeFile(file, JSON.stringify({ name, hostname: `${name}.example`, report }));
}

/** The forward that leads a worker to the server, and works. */
export function toWorker(worker: string, number = 20): Forward {
  return {
    id: `${worker}.server`,
    role: 'server_at_worker',
    direction: 'remote',
    workers: [worker],
    listen: '127.0.0.1:8090',
    target: '127.0.0.1:18090',
    route: [`root@10.20.0.${number}:22`],
    state: 'up',
    state_age_ms: 3_600_000,
    round_trip_ms: 3.4,
    to_target_bytes: 48_300_000,
    from_target_bytes: 5_100_000,
    open_connections: 2,
    reconnects: 1,
    availability: { day: 0.9993, week: 0.9999, month: null },
    cuts: [{ began_ago_ms: 7_200_000, lasted_ms: 61_000, fault: { hop: `root@10.20.0.${number}:22`, reason: 'keep_alive_lost', params: { silent_s: 45 } } }],
  };
}

/** The forward that brings the server's port to the bastion. */
export function serverHere(): Forward {
  return {
    ...toWorker('server'),
    id: 'server',
    role: 'server_here',
    direction: 'local',
    workers: [],
    listen: '127.0.0.1:18090',
    target: '10.0.0.1:8090',
    route: ['root@10.0.0.1:22'],
    reconnects: 0,
    availability: { day: 1, week: 1, month: 1 },
    cuts: [],
  };
}

/** Down for ten minutes: its host does not answer. */
export function broken(forward: Forward): Forward {
  const address = forward.route[0]?.split('@')[1] ?? '';
  const { round_trip_ms: _, ...rest } = forward;
  const fault = { hop: forward.route[0] ?? '', reason: 'ssh_no_answer', params: { address } };
  const cuts = [{ began_ago_ms: 600_000, lasted_ms: null, fault }, ...forward.cuts];
  return { ...rest, state: 'down', state_age_ms: 600_000, fault, open_connections: 0, cuts };
}

export function reporting(forwards: Forward[], more: Partial<Report> = {}): Report {
  return { place: { place: 'bastion' }, forwards, certificates: [], ...more };
}
