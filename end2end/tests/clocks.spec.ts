import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Api, until, type Worker } from '../support/api.ts';
import { bannerLine, card, expectState } from '../support/fleet-page.ts';
import { expect, logIn, test } from '../support/test.ts';

const minute = 60_000;
const hour = 60 * minute;

/** What libfaketime is told, how far off that is, and the words about it. */
const clocks = [
  { name: 'three-min-ahead', clock: '+3m', offsetMs: 3 * minute, words: /ahead of the server's\./ },
  { name: 'three-min-behind', clock: '-3m', offsetMs: -3 * minute, words: /behind the server's\./ },
  { name: 'eight-hours-ahead', clock: '+8h', offsetMs: 8 * hour, words: /ahead of the server's, close to 8 h: probably the hardware clock/ },
  { name: 'eight-hours-behind', clock: '-8h', offsetMs: -8 * hour, words: /behind the server's, close to 8 h: probably the hardware clock/ },
];
const in1970 = { name: 'in-1970', clock: '@1970-01-01 00:00:10' };

test('workers whose clocks are wrong stay Ready, and each is told what is wrong', async ({ page, lab }) => {
  test.setTimeout(240_000);
  const server = await lab.server({ args: ['--worker-offline-timeout', '30'] });
  const api = await Api.logIn(server);
  for (const { name, clock } of [...clocks, in1970]) await lab.worker(server, { name, clock });

  // longer than the offline timeout: whoever is judged by a worker's clock would have called them lost by now
  const workers = await until('every worker has been heard for 40 s', async () => {
    const all = await api.workers();
    for (const worker of all) expect(['ready', 'pending', 'unreachable'], worker.name).toContain(worker.state);
    return all.length === clocks.length + 1 && all.every(heardFor(40_000)) ? all : undefined;
  }, 120_000);
  for (const worker of workers) expect(worker.state, worker.name).toBe('ready');

  for (const { name, offsetMs } of clocks) {
    const measured = Number(condition(workers, name, 'clock').params['offset_ms']);
    expect(Math.abs(measured - offsetMs), `${name}: ${measured}`).toBeLessThan(5_000);
  }
  expect(Number(condition(workers, in1970.name, 'clock').params['offset_ms'])).toBeLessThan(-50 * 365 * 24 * hour);

  await logIn(page, server.url);
  for (const { name } of [...clocks, in1970]) await expectState(card(page, name), 'ready');
  for (const { name, words } of clocks) await expect(bannerLine(page, name)).toContainText(words);
  await expect(bannerLine(page, in1970.name)).toContainText('behind the server');
});

test('a server whose clock jumps loses nobody and names the time zone', async ({ page, lab }) => {
  test.setTimeout(240_000);
  const clockFile = join(await lab.folder(), 'clock');
  await writeFile(clockFile, '+0');
  const server = await lab.server({ args: ['--worker-offline-timeout', '30'], clockFile });
  const api = await Api.logIn(server);
  await lab.worker(server, { name: 'steady' });
  await until('the worker is Ready', async () => ((await api.worker('steady'))?.state === 'ready' ? true : undefined));

  await writeFile(clockFile, '+8h');
  const jumped = await until('the offset is measured anew', async () => {
    const worker = await api.worker('steady');
    expect(worker?.state).toBe('ready');
    return worker?.conditions.find(({ reason }) => reason === 'clock_offset_zone');
  }, 60_000);
  expect(jumped.params['half_hours']).toBe(-16);

  await logIn(page, server.url);
  await expectState(card(page, 'steady'), 'ready');
  await expect(bannerLine(page, 'steady')).toContainText('behind the server\'s, close to 8 h');
});

/** By the server's clock at both ends. */
function heardFor(ms: number): (worker: Worker) => boolean {
  return ({ heartbeat_time, created_at }) =>
    heartbeat_time !== null && Date.parse(heartbeat_time) - Date.parse(created_at) >= ms;
}

function condition(workers: Worker[], name: string, type: string) {
  const found = workers.find(worker => worker.name === name)?.conditions.find(condition => condition.type === type);
  if (found === undefined) throw new Error(`${name} has no condition ${type}`);
  return found;
}
