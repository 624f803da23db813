/**
 * The list of workers with very many of them, in a real browser: how long the first page takes, how long a key, how much
 * memory the tab takes, and what the events weigh. It measures and prints, and asserts nothing about time.
 *
 * Which fleets: `FLEETS=1000,10000`. How long the tab stays open: `MINUTES=5`. Where pictures go: `PICTURES=folder`.
 */
import { join } from 'node:path';
import type { CDPSession, Page } from '@playwright/test';
import { Api } from '../support/api.ts';
import { adminPassword, type Server } from '../support/lab.ts';
import { program } from '../support/machine.ts';
import { expect, fillLogin, hydrated, test } from '../support/test.ts';

const fleets = (process.env['FLEETS'] ?? '1000,10000').split(',').map(Number);
const minutes = Number(process.env['MINUTES'] ?? '5');
const pictures = process.env['PICTURES'];
/** Typed and taken away again, so that few rows follow many and many follow few. */
const words = ['npu-0', '910b', 'rack', 'npu-00042'];
const joinLimitMs = 300_000;

for (const count of fleets) {
  test(`${count} workers`, async ({ page, lab }) => {
    const server = await lab.server();
    const fleet = lab.start('fleet', {
      command: program('fleet'),
      args: ['--server', server.url, '--workers', String(count), '--hold', '--duration', String(minutes * 60 + 900)],
      env: { FLEET_TOKEN: await server.file('token') },
    });
    await fleet.printed(new RegExp(`^${count} workers have joined`, 'm'), joinLimitMs);
    // one heartbeat and one report of everybody
    await new Promise(resolve => setTimeout(resolve, 15_000));

    report('workers', String(count));
    await measureServer(server);
    await page.goto(`${server.url}/login`);
    await hydrated(page);
    await fillLogin(page, adminPassword);
    await page.waitForURL(/\/workers$/);
    const session = await page.context().newCDPSession(page);
    await measureVisits(page, server, session);
    await measureKeys(page);
    await measureScrolling(page);
    await measureStay(page, session);
    if (pictures !== undefined) await takePictures(page, server, count, pictures);
  });
}

async function measureServer(server: Server): Promise<void> {
  const cookie = (await Api.logIn(server)).cookie;
  const ask = async (path: string) => {
    const begun = performance.now();
    const answer = await fetch(server.url + path, { headers: { cookie, 'accept-encoding': 'gzip' } });
    const headMs = performance.now() - begun;
    const bytes = (await answer.arrayBuffer()).byteLength;
    return { headMs, bytes, wholeMs: performance.now() - begun };
  };
  for (const path of ['/workers', '/workers?q=npu-0004', '/workers?sort=use', '/v1/fleet']) {
    const answers = [];
    for (let round = 0; round < 15; round += 1) answers.push(await ask(path));
    const head = quantiles(answers.map(answer => answer.headMs));
    const whole = quantiles(answers.map(answer => answer.wholeMs));
    report(`server, ${path}`, `head ${head}, whole ${whole}, ${answers[0]?.bytes} bytes plain`);
  }
}

async function measureVisits(page: Page, server: Server, session: CDPSession): Promise<void> {
  const paints = [];
  const takeovers = [];
  const lives = [];
  await session.send('Network.enable');
  for (let visit = 0; visit < 15; visit += 1) {
    await page.goto(`${server.url}/workers`);
    await hydrated(page);
    takeovers.push(await page.evaluate(() => performance.now()));
    await page.waitForSelector('[data-connection="live"]');
    lives.push(await page.evaluate(() => performance.now()));
    paints.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN));
  }
  report('first contentful paint', quantiles(paints));
  report('taken over by the browser', quantiles(takeovers));
  report('live', quantiles(lives));
}

/** From a key to the picture that shows what it did. */
async function measureKeys(page: Page): Promise<void> {
  await page.evaluate(() => {
    const times: number[] = [];
    Object.assign(window, { keyTimes: times });
    document.addEventListener('keydown', event => {
      requestAnimationFrame(() => {
        const channel = new MessageChannel();
        // it comes when the frame has been painted
        channel.port1.onmessage = () => times.push(performance.now() - event.timeStamp);
        channel.port2.postMessage(null);
      });
    }, true);
  });
  await page.keyboard.press('/');
  for (const word of words) {
    for (const key of word) await press(page, key);
    for (const _ of word) await press(page, 'Backspace');
  }
  const times = await page.evaluate(() => (window as unknown as { keyTimes: number[] }).keyTimes);
  report('key to paint', quantiles(times));
  await page.keyboard.type('npu-00042');
  await expect(page.getByRole('row')).toHaveCount(2);
  await page.keyboard.press('Escape');
}

async function press(page: Page, key: string): Promise<void> {
  await page.keyboard.press(key);
  await page.waitForTimeout(120);
}

/** How long frames take while one scrolls through everything, and how long rows are blank. */
async function measureScrolling(page: Page): Promise<void> {
  const answers: { path: string; ms: number }[] = [];
  page.on('requestfinished', request => {
    answers.push({ path: new URL(request.url()).pathname, ms: request.timing().responseEnd });
  });
  page.on('requestfailed', request => {
    report('failed while scrolling', `${request.url()} ${request.failure()?.errorText}`);
  });
  await page.mouse.move(700, 500);
  const frames = page.evaluate(
    () =>
      new Promise<number[]>(resolve => {
        const lengths: number[] = [];
        let before = performance.now();
        const frame = (now: number) => {
          lengths.push(now - before);
          before = now;
          if (lengths.length < 240) requestAnimationFrame(frame);
          else resolve(lengths);
        };
        requestAnimationFrame(frame);
      }),
  );
  for (let turn = 0; turn < 40; turn += 1) {
    await page.mouse.wheel(0, 700);
    await page.waitForTimeout(50);
  }
  report('frame while scrolling', quantiles(await frames));
  const begun = performance.now();
  await page.waitForFunction(() => document.querySelector('.blank') === null);
  report('blank rows after scrolling', `${(performance.now() - begun).toFixed(0)} ms`);
  answers.sort((left, right) => right.ms - left.ms);
  report('answers while scrolling', `${answers.length}, longest ${answers[0]?.path} ${answers[0]?.ms.toFixed(0)} ms`);
  await page.keyboard.press('Home');
}

async function measureStay(page: Page, session: CDPSession): Promise<void> {
  let bytes = 0;
  let messages = 0;
  session.on('Network.dataReceived', event => {
    bytes += event.encodedDataLength;
  });
  session.on('Network.eventSourceMessageReceived', () => {
    messages += 1;
  });
  for (let minute = 1; minute <= minutes; minute += 1) {
    const [bytesBefore, messagesBefore] = [bytes, messages];
    await page.waitForTimeout(60_000);
    const perSecond = ((bytes - bytesBefore) / 60).toFixed(0);
    report(
      `minute ${minute}`,
      `${await memory(session)}, ${perSecond} bytes and ${((messages - messagesBefore) / 60).toFixed(2)} events a second`,
    );
  }
}

async function memory(session: CDPSession): Promise<string> {
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  const prototype = await session.send('Runtime.evaluate', { expression: 'WebAssembly.Memory.prototype' });
  const found = await session.send('Runtime.queryObjects', { prototypeObjectId: prototype.result.objectId ?? '' });
  const sizes = await session.send('Runtime.callFunctionOn', {
    objectId: found.objects.objectId ?? '',
    functionDeclaration: 'function () { return this.reduce((sum, memory) => sum + memory.buffer.byteLength, 0); }',
    returnByValue: true,
  });
  return `JavaScript ${mebibytes(usedSize)}, WebAssembly ${mebibytes(Number(sizes.result.value))}`;
}

async function takePictures(page: Page, server: Server, count: number, folder: string): Promise<void> {
  for (const [width, height] of [[1440, 900], [390, 844]] as const) {
    for (const theme of ['light', 'dark'] as const) {
      for (const language of ['en', 'zh-CN'] as const) {
        await page.setViewportSize({ width, height });
        await page.context().addCookies([
          { name: 'gpustack_theme', value: theme, url: server.url },
          { name: 'gpustack_language', value: language, url: server.url },
        ]);
        for (const [name, path] of Object.entries({ workers: '/workers', cards: '/workers?view=cards', add: '/workers/add' })) {
          await page.goto(server.url + path);
          await hydrated(page);
          await page.waitForTimeout(1_500);
          await page.screenshot({ path: join(folder, `${name}-${count}-${width}-${theme}-${language}.png`) });
        }
      }
    }
  }
}

function quantiles(values: number[]): string {
  const sorted = [...values].sort((left, right) => left - right);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]?.toFixed(1);
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, most ${at(1)} ms`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

function report(what: string, value: string): void {
  console.log(`${what.padEnd(34)} ${value}`);
}
