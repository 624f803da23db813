import type { Lab, Server } from '../support/lab.ts';
import { gpu, npu, type PlayedWorker } from '../support/played-worker.ts';
import { expect, hydrated, logIn, open, type Page, test } from '../support/test.ts';

/** A refresh comes every ten seconds. */
const refreshLimitMs = 25_000;

test('all devices are listed, filtered and sorted by the address, and lead to their workers', async ({ page, lab }) => {
  const server = await lab.server();
  await mixedFleet(server, lab);
  await logIn(page, server.url);
  await page.getByRole('link', { name: 'Devices', exact: true }).click();
  await expect(page).toHaveURL(/\/devices$/);
  await expect(page).toHaveTitle(/Devices · gpustack$/);
  await expect(rows(page)).toHaveCount(7);
  expect(await workers(page)).toEqual(['w2', 'w2', 'w2', 'w2', 'w10', 'w10', 'w10']);
  await expect(rows(page).nth(3)).toContainText('Present, no driver');
  await expect(rows(page).nth(1).getByTitle('The tool says that there is none now.')).toHaveText('–');
  await expect(model(page, '910B3')).toContainText('3 devices');
  await expect(model(page, '910B3')).toContainText('2 busy · 1 free');

  await model(page, '910B3').click();
  await expect(page).toHaveURL(/model=910B3/);
  await expect(rows(page)).toHaveCount(3);
  await column(page, 'Utilisation').getByRole('link').click();
  await expect(column(page, 'Utilisation')).toHaveAttribute('aria-sort', 'descending');
  await expect(rows(page).first()).toContainText('90 %');
  await column(page, 'Utilisation').getByRole('link').press('Enter');
  await expect(column(page, 'Utilisation')).toHaveAttribute('aria-sort', 'ascending');
  await expect(column(page, 'Utilisation').getByRole('link')).toBeFocused();
  await expect(rows(page).first()).toContainText('0 %');
  await expect(page).toHaveURL(/model=910B3&sort=-use$/);

  await page.keyboard.press('/');
  await page.keyboard.type('w10');
  await expect(page).toHaveURL(/q=w10/);
  await expect(page).toHaveURL(/sort=-use/);
  await page.getByRole('link', { name: 'Clear search and filters' }).click();
  await expect(rows(page)).toHaveCount(7);
  await chip(page, 'Problems').click();
  await expect(rows(page)).toHaveCount(2);
  await page.goBack();
  await expect(rows(page)).toHaveCount(7);

  await page.goto(`${server.url}/devices?q=nothing-is-called-so`);
  await hydrated(page);
  await expect(page.getByText('No device fits this search and filter.')).toBeVisible();
  await page.getByRole('main').getByRole('link', { name: 'Clear search and filters' }).last().click();
  await rows(page).first().getByRole('link', { name: 'w2' }).click();
  await expect(page).toHaveURL(/\/workers\/\d+$/);
  await expect(page.getByRole('heading', { name: 'w2' })).toBeVisible();
});

test('a reading changes while one works on the page, and nothing else does', async ({ page, lab }) => {
  const server = await lab.server();
  const { w2 } = await mixedFleet(server, lab);
  await logIn(page, server.url);
  await open(page, `${server.url}/devices`);
  const link = rows(page).first().getByRole('link');
  await link.focus();
  const element = await link.elementHandle();
  const other = rows(page).nth(4).locator('small').first();
  await other.selectText();
  await link.focus();
  const selected = await selection(page);
  expect(selected.length).toBeGreaterThan(5);

  await w2.report({ gpu_devices: [{ ...gpu(0, 40), temperature: 77 }, gpu(1, 90), npu(2, 90)] });
  await expect(rows(page).first()).toContainText('77 °C', { timeout: refreshLimitMs });
  await expect(link).toBeFocused();
  expect(await element?.evaluate(link => link === document.activeElement)).toBe(true);
  expect(await selection(page)).toBe(selected);
  // the device without a driver has got one
  await expect(rows(page)).toHaveCount(6);
});

test('a row that comes to another place keeps the focus', async ({ page, lab }) => {
  const server = await lab.server();
  const { w2 } = await mixedFleet(server, lab);
  await logIn(page, server.url);
  await open(page, `${server.url}/devices?sort=temperature`);
  await expect(rows(page).first()).not.toContainText('77 °C');
  const link = page.getByRole('row').filter({ hasText: '0000:01:00.0' }).getByRole('link');
  await link.focus();
  await w2.report({ gpu_devices: [{ ...gpu(0, 40), temperature: 99 }, gpu(1, 90), { ...npu(2, 90), temperature: 98 }] });
  await expect(rows(page).first()).toContainText('99 °C', { timeout: refreshLimitMs });
  await expect(link).toBeFocused();
});

test('the page is in Chinese, and becomes so without a reload', async ({ page, lab }) => {
  const server = await lab.server();
  await mixedFleet(server, lab);
  await logIn(page, server.url);
  await open(page, `${server.url}/devices`);
  await page.getByRole('button', { name: '中文' }).click();
  await expect(page.getByRole('columnheader', { name: '利用率' })).toBeVisible();
  await expect(rows(page).nth(3)).toContainText('存在，但无驱动');
  await page.reload();
  await hydrated(page);
  await expect(page).toHaveTitle(/设备 · gpustack$/);
  await expect(model(page, '910B3')).toContainText('2 忙碌 · 1 空闲');
});

test('a fleet without workers leads to the page that adds one', async ({ page, lab }) => {
  const server = await lab.server();
  await logIn(page, server.url);
  await open(page, `${server.url}/devices`);
  await expect(page.getByRole('heading', { name: 'No workers yet' })).toBeVisible();
  await page.getByRole('main').getByRole('link', { name: 'Add worker' }).click();
  await expect(page).toHaveURL(/\/workers\/add/);
});

test('more than a hundred devices come in pages', async ({ page, lab }) => {
  const server = await lab.server();
  await lab.fleet(server, 15);
  await logIn(page, server.url);
  await open(page, `${server.url}/devices`);
  await expect(page.getByText('1–100 of 120').first()).toBeVisible();
  await page.getByRole('link', { name: 'Next' }).click();
  await expect(page.getByText('101–120 of 120').first()).toBeVisible();
  await expect(rows(page)).toHaveCount(20);
  // beyond the end is the last page
  await open(page, `${server.url}/devices?page=9&sort=colour`);
  await expect(page.getByText('101–120 of 120').first()).toBeVisible();
});

test('on a phone nothing has to be scrolled sideways', async ({ page, lab }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  const server = await lab.server();
  await mixedFleet(server, lab);
  await logIn(page, server.url);
  await page.getByRole('navigation', { name: 'Main navigation' }).getByRole('link', { name: 'Devices' }).click();
  await expect(rows(page)).toHaveCount(7);
  for (const row of await rows(page).all()) {
    const box = await row.boundingBox();
    expect((box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 999) <= 390).toBe(true);
    expect(await row.evaluate(row => row.scrollWidth <= row.clientWidth)).toBe(true);
  }
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});

test.describe('a server that is not reached', () => {
  test.use({ expectedComplaints: [/net::ERR_/] });

  test('leaves what is shown, and what was asked for comes when it is reached again', async ({ page, lab }) => {
    const server = await lab.server();
    await mixedFleet(server, lab);
    await logIn(page, server.url);
    await open(page, `${server.url}/devices`);
    await page.route('**/api/draw', route => route.abort());
    const refused = page.waitForEvent('requestfailed', request => request.url().endsWith('/draw'));
    await model(page, '910B3').click();
    await refused;
    await expect(page.locator('.drawn')).toHaveAttribute('aria-busy', 'true');
    await expect(rows(page)).toHaveCount(7);
    await page.unroute('**/api/draw');
    await expect(rows(page)).toHaveCount(3, { timeout: refreshLimitMs });
    await expect(page.locator('.drawn')).not.toHaveAttribute('aria-busy', 'true');
  });
});

test.describe('without JavaScript', () => {
  // the browser notes that nobody runs what the page preloads
  test.use({ javaScriptEnabled: false, expectedComplaints: [/was preloaded using link preload but not used/] });

  test('the list is whole, and its links filter and sort it', async ({ page, lab }) => {
    const server = await lab.server();
    await mixedFleet(server, lab);
    await page.goto(`${server.url}/devices`);
    await page.getByLabel('User', { exact: true }).fill('admin');
    await page.getByLabel('Password', { exact: true }).fill('Granite-Harbour-42');
    await page.getByRole('button', { name: 'Log in' }).click();
    await expect(page).toHaveURL(/\/devices$/);
    await expect(rows(page)).toHaveCount(7);
    await chip(page, 'NVIDIA').click();
    await expect(rows(page)).toHaveCount(2);
    await column(page, 'Utilisation').getByRole('link').click();
    await expect(rows(page).first()).toContainText('90 %');
    await page.getByRole('searchbox').fill('w2');
    await page.getByRole('searchbox').press('Enter');
    await expect(page).toHaveURL(/q=w2/);
    await expect(page).toHaveURL(/vendor=NVIDIA/);
    await expect(rows(page)).toHaveCount(2);
  });
});

/** Two workers: `w2` with two GPUs, an NPU and another without a driver, `w10` with three NPUs, one of them sick. */
async function mixedFleet(server: Server, lab: Lab): Promise<{ w2: PlayedWorker }> {
  const sick = { ...npu(2, 0), health: 'critical', error_codes: ['80E01801'] };
  const { power_w, ...quiet } = gpu(1, 90);
  const absent = [{ reading: 'power', why: 'not_available' }];
  const undriven = [{ bus_id: '0000:c7:00.0', vendor: 'Huawei', pci_id: '19e5:d802' }];
  await lab.played(server, 'w10', { gpu_devices: [npu(0, 50), npu(1, 90), sick] });
  const w2 = await lab.played(server, 'w2', {
    gpu_devices: [gpu(0, 40), { ...quiet, absent }, { ...npu(2, 90), name: '910B4' }],
    undriven_devices: undriven,
  });
  return { w2 };
}

function rows(page: Page) {
  return page.getByRole('table', { name: /^(Devices|设备)$/ }).locator('tbody tr');
}

async function workers(page: Page): Promise<string[]> {
  return await rows(page).getByRole('link').allTextContents();
}

function column(page: Page, name: string) {
  return page.getByRole('columnheader', { name });
}

function model(page: Page, name: string) {
  return page.getByRole('list', { name: /^(Models|型号)$/ }).getByRole('link', { name });
}

function chip(page: Page, name: string) {
  return page.getByRole('list', { name: 'Filter devices' }).getByRole('link', { name });
}

async function selection(page: Page): Promise<string> {
  return await page.evaluate(() => String(getSelection()));
}
