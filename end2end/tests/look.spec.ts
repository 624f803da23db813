import { copyFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Api, until } from '../support/api.ts';
import { card } from '../support/fleet-page.ts';
import type { Lab, Server } from '../support/lab.ts';
import { expect, hydrated, logIn, type Page, test } from '../support/test.ts';

const widths = [1440, 390];
const languages = ['en', 'zh-CN'];
const themes = ['light', 'dark'];

/** Set to renew the picture in the README. */
const renewPicture = process.env['README_PICTURE'] !== undefined;
const picture = resolve(import.meta.dirname, '../../docs/images/workers.png');

test('every page fits the window in both languages and themes, on a screen and on a phone', async ({ page, lab }, info) => {
  test.setTimeout(300_000);
  const server = await lab.server({ args: ['--worker-offline-timeout', '30'] });
  const worker = await smallFleetInTrouble(server, lab);
  await logIn(page, server.url);
  await expect(card(page, 'npu-198-98')).toContainText('8 × 910B3', { timeout: 45_000 });
  const ill = (await (await Api.logIn(server)).worker('npu-198-98'))?.id;

  const pages = { workers: '/workers', table: '/workers?view=table', worker: `/workers/${worker}`, host: `/workers/${ill}/host`, 'add-worker': '/workers/add?network=tunnels', devices: '/devices', settings: '/settings' };
  for (const language of languages) {
    for (const theme of themes) {
      await choose(page, server, language, theme);
      for (const [name, path] of Object.entries(pages)) {
        for (const width of widths) {
          await page.setViewportSize({ width, height: width > 1000 ? 900 : 844 });
          await page.goto(server.url + path);
          await hydrated(page);
          await expect(page.locator('html')).toHaveAttribute('lang', language);
          await page.screenshot({ path: info.outputPath(`${name}-${language}-${theme}-${width}.png`) });
          await expectToFit(page, `${name} ${language} ${theme} ${width}`);
          if (name === 'table') await expectNamesToBeRead(page);
        }
      }
    }
  }
  expect(await brightness(page)).toBeLessThan(80);
  await choose(page, server, 'en', 'light');
  await page.goto(`${server.url}/workers`);
  expect(await brightness(page)).toBeGreaterThan(200);
  if (renewPicture) await copyFile(info.outputPath('workers-en-light-1440.png'), picture);
});

/** Six workers: four at work, one whose clock runs in another time zone, one that cannot be reached. */
async function smallFleetInTrouble(server: Server, lab: Lab): Promise<number> {
  await lab.fleet(server, 4, ['--name-prefix', 'npu-198']);
  await lab.worker(server, { name: 'npu-198-98', clock: '+8h', npuSmi: 'unhealthy' });
  const lost = await lab.worker(server, { name: 'npu-198-97' });
  const api = await Api.logIn(server);
  await until('the worker that is to be lost has shown its devices', async () => {
    const worker = await api.worker('npu-198-97');
    return worker?.state === 'ready' && worker.status.gpu_devices?.length === 8 ? true : undefined;
  });
  await lost.program.kill();
  return await until('it is lost', async () => {
    const worker = await api.worker('npu-198-97');
    return worker?.state === 'not_ready' ? worker.id : undefined;
  }, 60_000);
}

async function choose(page: Page, server: Server, language: string, theme: string): Promise<void> {
  const cookies = { gpustack_language: language, gpustack_theme: theme };
  await page.context().addCookies(Object.entries(cookies).map(([name, value]) => ({ name, value, url: server.url })));
}

async function expectToFit(page: Page, where: string): Promise<void> {
  const [content, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  expect(content, where).toBeLessThanOrEqual(window_ ?? 0);
}

/** However narrow the window: the table scrolls in its frame then. */
async function expectNamesToBeRead(page: Page): Promise<void> {
  const name = page.getByRole('link', { name: 'npu-198-00000' });
  const [shown, whole] = await name.evaluate(link => [link.parentElement?.clientWidth ?? 0, link.scrollWidth]);
  expect(shown).toBeGreaterThanOrEqual(whole ?? Infinity);
}

/** Of the page's ground, 0 to 255. */
async function brightness(page: Page): Promise<number> {
  const colour = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map(Number);
  return (red + green + blue) / 3;
}
