import { Api, until } from '../support/api.ts';
import { chip, row } from '../support/fleet-page.ts';
import { expect, hydrated, logIn, test } from '../support/test.ts';

const workers = 500;
/** Several windows full, far less than all. */
const mostRows = 120;

test('five hundred workers can be scrolled and filtered, and most of them are not in the document', async ({ page, lab }) => {
  test.setTimeout(180_000);
  const server = await lab.server();
  await lab.fleet(server, workers);
  await logIn(page, server.url);
  await expect(chip(page, 'All')).toContainText(String(workers));
  await expect(chip(page, 'Ready')).toContainText(String(workers), { timeout: 60_000 });

  const rows = page.locator('main').getByRole('link', { name: /^npu-\d{5}$/ });
  await expect(rows.first()).toHaveText('npu-00000');
  expect(await rows.count()).toBeLessThan(mostRows);
  await page.mouse.move(720, 600);
  await expect(async () => {
    await page.mouse.wheel(0, 20_000);
    await expect(page.getByRole('link', { name: 'npu-00499', exact: true })).toBeInViewport({ timeout: 500 });
  }).toPass();
  expect(await rows.count()).toBeLessThan(mostRows);
  // what came into the window is known in full, and stays current
  await expect(page.locator('.blank')).toHaveCount(0);
  await expect(row(page, 'npu-00499')).toContainText('8 × ');
  const heartbeat = row(page, 'npu-00499').locator('time');
  const before = await heartbeat.getAttribute('datetime');
  await expect(heartbeat).not.toHaveAttribute('datetime', String(before), { timeout: 30_000 });

  await page.keyboard.press('/');
  await page.keyboard.type('npu-0042');
  await expect(rows).toHaveCount(10);
  await expect(page).toHaveURL(/q=npu-0042/);
  await page.reload();
  await hydrated(page);
  await expect(rows).toHaveCount(10);
  await page.keyboard.press('/');
  await page.keyboard.press('Escape');
  await expect(rows.first()).toHaveText('npu-00000');
});

test('a list of very many stays where the wheel left it', async ({ page, lab }) => {
  test.setTimeout(180_000);
  const server = await lab.server();
  const many = 2_000;
  await lab.fleet(server, many);
  await logIn(page, server.url);
  await expect(chip(page, 'All')).toContainText(String(many));
  for (const layout of ['table', 'cards']) {
    await page.goto(`${server.url}/workers?view=${layout}`);
    await hydrated(page);
    await expect(page.locator('[data-connection="live"]')).toBeVisible();
    await page.mouse.move(720, 600);
    const [turns, step] = [40, 700];
    for (let turn = 1; turn <= turns; turn += 1) {
      await page.mouse.wheel(0, step);
      // a frame or two, in which rows come into the document and go from it
      await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    }
    const place = () => page.evaluate(() => window.scrollY);
    // a turn that comes before the room below the rows is known goes less far
    await expect.poll(place).toBeGreaterThan((turns * step) / 2);
    await expect(page.locator('.blank')).toHaveCount(0);
    expect(await place(), layout).toBeLessThanOrEqual(turns * step);
  }
});

test('one comes back to where one left a long list', async ({ page, lab }) => {
  const server = await lab.server();
  await lab.fleet(server, workers);
  await logIn(page, server.url);
  await expect(chip(page, 'All')).toContainText(String(workers));
  const place = () => page.evaluate(() => window.scrollY);
  const scrolled = page.evaluate(
    () => new Promise(resolve => window.addEventListener('scrollend', resolve, { once: true })),
  );
  await page.mouse.move(720, 600);
  await page.mouse.wheel(0, 9_000);
  await scrolled;
  await expect(page.locator('.blank')).toHaveCount(0);
  const left = await place();
  expect(left).toBeGreaterThan(5_000);

  // one that is in the window: Playwright would scroll to another
  await page.evaluate(() => {
    const links = [...document.querySelectorAll<HTMLElement>('main .row-link')];
    links.find(link => link.getBoundingClientRect().top > 300)?.click();
  });
  await page.waitForURL(/\/workers\/\d+$/);
  await page.goBack();
  await expect.poll(place).toBe(left);
  await page.reload();
  await expect.poll(place).toBe(left);
  // what is chosen anew begins at the top
  await page.getByRole('navigation').getByRole('link', { name: 'Workers' }).click();
  await expect.poll(place).toBe(0);
});

test('a list of many is ordered by what the server knows of all, and by name again', async ({ page, lab }) => {
  const server = await lab.server();
  await lab.fleet(server, 150);
  await logIn(page, server.url);
  await expect(chip(page, 'Ready')).toContainText('150', { timeout: 60_000 });
  const rows = page.locator('main').getByRole('link', { name: /^npu-\d{5}$/ });
  const names = () => rows.allTextContents();
  await page.getByRole('columnheader', { name: 'Worker' }).getByRole('link').click();
  await expect(rows.first()).toHaveText('npu-00149');
  expect(await names()).toEqual([...(await names())].sort().reverse());
  await page.getByRole('columnheader', { name: 'Use', exact: true }).getByRole('link').click();
  await expect(page).toHaveURL(/sort=use/);
  await expect(page.getByRole('columnheader', { name: 'Use', exact: true })).toHaveAttribute('aria-sort', 'ascending');
  await expect.poll(async () => (await names())[0]).not.toBe('npu-00149');
  await page.getByRole('columnheader', { name: 'Worker' }).getByRole('link').click();
  await expect(rows.first()).toHaveText('npu-00000');
});

test.describe('the order of the list', () => {
  test.use({ expectedComplaints: [/net::ERR_/] });

  test('nobody is missing from a list whose order the server did not tell', async ({ page, lab }) => {
    const server = await lab.server();
    await lab.fleet(server, 150);
    await logIn(page, server.url);
    await page.route('**/ask_order', route => route.abort());
    const refused = page.waitForEvent('requestfailed', request => request.url().endsWith('/ask_order'));
    await page.goto(`${server.url}/workers`);
    await refused;
    await page.getByRole('searchbox').fill('npu-00149');
    await expect(row(page, 'npu-00149')).toBeVisible();
  });
});

test('a worker that joins or leaves comes into the list and goes from it', async ({ page, lab }) => {
  const server = await lab.server();
  await lab.fleet(server, 3);
  await logIn(page, server.url);
  await expect(chip(page, 'All')).toContainText('3');
  const late = await lab.worker(server, { name: 'late' });
  await expect(page.getByRole('link', { name: 'late', exact: true })).toBeVisible();
  await expect(chip(page, 'All')).toContainText('4');
  // who is at work would come back
  await late.program.stop();
  const api = await Api.logIn(server);
  const { id } = await until('the worker', () => api.worker('late'));
  await fetch(`${server.url}/v1/workers/${id}`, { method: 'DELETE', headers: { cookie: api.cookie } });
  await expect(page.getByRole('link', { name: 'late', exact: true })).toHaveCount(0);
  await expect(chip(page, 'All')).toContainText('3');
});
