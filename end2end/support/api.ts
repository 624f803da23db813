/** The server's API, as a program with an API key uses it. */
import type { Server } from './lab.ts';
import { adminPassword } from './lab.ts';

export interface Worker {
  id: number;
  name: string;
  state: string;
  heartbeat_time: string | null;
  created_at: string;
  conditions: { type: string; status: string; reason: string; params: Record<string, unknown> }[];
  status: { gpu_devices: { name: string }[] | null; devices_stale_s?: number };
}

export class Api {
  readonly #server: Server;
  /** Of the session. */
  readonly cookie: string;

  private constructor(server: Server, cookie: string) {
    this.#server = server;
    this.cookie = cookie;
  }

  static async logIn(server: Server): Promise<Api> {
    const body = new URLSearchParams({ username: 'admin', password: adminPassword });
    const answer = await fetch(`${server.url}/auth/login`, { method: 'POST', body });
    const cookie = answer.headers.getSetCookie()[0]?.split(';')[0];
    if (!answer.ok || cookie === undefined) throw new Error(`login answered ${answer.status}: ${await answer.text()}`);
    return new Api(server, cookie);
  }

  async workers(): Promise<Worker[]> {
    const all: Worker[] = [];
    for (let page = 1; ; page += 1) {
      const { items, pagination } = await this.#get<{ items: Worker[]; pagination: { totalPage: number } }>(
        `/v1/workers?perPage=100&page=${page}`,
      );
      all.push(...items);
      if (page >= pagination.totalPage) return all;
    }
  }

  async worker(name: string): Promise<Worker | undefined> {
    return (await this.workers()).find(worker => worker.name === name);
  }

  async #get<T>(path: string): Promise<T> {
    const answer = await fetch(this.#server.url + path, {
      headers: { cookie: this.cookie },
      signal: AbortSignal.timeout(15_000),
    });
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as T;
  }
}

/** Calls `look` again and again until it gives something, or the time is over. */
export async function until<T>(what: string, look: () => Promise<T | undefined>, limitMs = 30_000): Promise<T> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`${what}: not within ${limitMs / 1000} s`);
    await new Promise(resolve => setTimeout(resolve, 250));
  }
}
