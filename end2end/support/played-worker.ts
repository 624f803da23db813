/** A worker of GPUStack 0.7 whose devices the test makes up. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server as HttpServer } from 'node:http';
import type { Server } from './lab.ts';

/** As `/v1/workers` takes it; a reading that is left out is unknown. */
export interface PlayedDevice {
  index: number;
  device_index?: number;
  device_chip_index?: number;
  physical_index?: number;
  name: string;
  vendor: string;
  type: string;
  bus_id?: string;
  core?: { utilization_rate: number };
  memory?: { total: number; used?: number; kind?: string };
  temperature?: number;
  power_w?: number;
  health?: string;
  error_codes?: string[];
  processes?: { pid: number; name: string }[];
  absent?: { reading: string; why: string }[];
}

export interface PlayedStatus {
  os?: { name: string; version: string };
  gpu_devices: PlayedDevice[];
  undriven_devices?: { bus_id: string; vendor: string; pci_id: string }[];
}

export class PlayedWorker {
  readonly #health: HttpServer;
  readonly #url: string;
  readonly #authorization: string;
  readonly #row: object;
  #id = 0;

  private constructor(health: HttpServer, url: string, authorization: string, row: object) {
    this.#health = health;
    this.#url = url;
    this.#authorization = authorization;
    this.#row = row;
  }

  /** Joins, and answers health checks until it is closed. */
  static async join(server: Server, name: string, status: PlayedStatus): Promise<PlayedWorker> {
    const health = createServer((_, answer) => answer.setHeader('content-type', 'application/json').end('"ok"'));
    await once(health.listen(0, '127.0.0.1'), 'listening');
    const address = health.address();
    if (address === null || typeof address === 'string') throw new Error('no port is free');
    const authorization = `Basic ${btoa(`system/worker/127.0.0.1:${await server.file('token')}`)}`;
    const row = { worker_uuid: randomUUID(), name, hostname: name, ip: '127.0.0.1', port: address.port, labels: { rack: 'b07' } };
    const worker = new PlayedWorker(health, `${server.url}/v1/workers`, authorization, row);
    const joined = await worker.#send('POST', worker.#url, status);
    worker.#id = ((await joined.json()) as { id: number }).id;
    return worker;
  }

  /** Tells what it sees now, which is a sign of life. */
  async report(status: PlayedStatus): Promise<void> {
    await this.#send('PUT', `${this.#url}/${this.#id}`, status);
  }

  async close(): Promise<void> {
    this.#health.closeAllConnections();
    await new Promise(resolve => this.#health.close(resolve));
  }

  async #send(method: string, url: string, status: PlayedStatus): Promise<Response> {
    const answer = await fetch(url, {
      method,
      headers: { authorization: this.#authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ ...this.#row, status }),
      signal: AbortSignal.timeout(15_000),
    });
    if (!answer.ok) throw new Error(`${method} ${url} was answered ${answer.status}: ${await answer.text()}`);
    return answer;
  }
}

const gib = 1024 ** 3;

/** An Ascend 910B3 with all its readings. */
export function npu(index: number, usePercent: number): PlayedDevice {
  return {
    index,
    device_index: index,
    device_chip_index: 0,
    name: '910B3',
    vendor: 'Huawei',
    type: 'npu',
    bus_id: `0000:c${index}:00.0`,
    core: { utilization_rate: usePercent },
    memory: { total: 64 * gib, used: Math.round((3.4 + usePercent / 2) * gib), kind: 'hbm' },
    temperature: 38 + Math.round(usePercent / 5),
    power_w: 92 + usePercent * 2,
    health: 'ok',
  };
}

/** A chip of an Atlas A3: two on a card, whose power the first one tells. */
export function a3(index: number, usePercent: number): PlayedDevice {
  const { power_w, ...chip } = npu(index, usePercent);
  const card = { ...chip, device_index: Math.floor(index / 2), device_chip_index: index % 2, name: 'Ascend910', bus_id: `0000:9${index}:00.0` };
  return index % 2 === 0 ? { ...card, power_w: 178.5 } : { ...card, absent: [{ reading: 'power', why: 'not_available' }] };
}

/** An A100 of NVIDIA, which tells no health. */
export function gpu(index: number, usePercent: number): PlayedDevice {
  const { health, device_chip_index, ...device } = npu(index, usePercent);
  const memory = { total: 40 * gib, used: Math.round((1.2 + usePercent * 0.35) * gib), kind: 'hbm' };
  return { ...device, name: 'NVIDIA A100-SXM4-40GB', vendor: 'NVIDIA', type: 'cuda', bus_id: `0000:0${index + 1}:00.0`, memory };
}
