import { chip } from '../support/fleet-page.ts';
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

  await page.keyboard.press('/');
  await page.keyboard.type('npu-0042');
  await expect(rows).toHaveCount(10);
  await expect(page).toHaveURL(/q=npu-0042/);
  await page.reload();
  await hydrated(page);
  await expect(rows).toHaveCount(10);
});
