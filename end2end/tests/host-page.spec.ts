import { card } from '../support/fleet-page.ts';
import { expect, logIn, test } from '../support/test.ts';

test('a host is gone through point by point, what is wrong stands first, and the page follows', async ({ page, lab }) => {
  test.setTimeout(180_000);
  const server = await lab.server();
  const worker = await lab.worker(server, { name: 'npu-host' });
  await logIn(page, server.url);
  await expect(card(page, 'npu-host')).toContainText('8 × 910B3', { timeout: 45_000 });
  await card(page, 'npu-host').getByRole('link', { name: 'npu-host' }).click();
  await page.getByRole('link', { name: 'Check the host' }).click();
  await expect(page.getByRole('heading', { name: 'Check the host', level: 1 })).toBeVisible();

  const points = page.locator('.condition');
  const tool = points.filter({ has: page.getByText('npu-smi', { exact: true }) });
  await expect(points.filter({ hasText: 'Accelerators' })).toContainText('8 devices.');
  await expect(tool).toContainText('works.');
  await expect(points.filter({ hasText: 'Data directory' })).toContainText('are free.');

  await worker.setNpuSmi('error');
  await expect(tool).toContainText('the driver did not initialise (code -8005)', { timeout: 60_000 });
  await expect(points.first()).toContainText('npu-smi');
  await page.getByRole('button', { name: '中文' }).click();
  await expect(tool).toContainText('-8005', { timeout: 30_000 });
  await expect(page.getByRole('heading', { level: 2 })).toContainText(/失败 [1-9]\d* 项/);
});

test('a worker without a link cannot be looked at, and the page says so', async ({ page, lab }) => {
  test.setTimeout(120_000);
  const server = await lab.server();
  const worker = await lab.worker(server, { name: 'npu-host' });
  await logIn(page, server.url);
  await expect(card(page, 'npu-host')).toContainText('8 × 910B3', { timeout: 45_000 });
  await worker.program.stop();
  await page.goto(`${server.url}/workers/1/host`);
  await expect(page.getByText('has no link at this moment')).toBeVisible();
  await expect(page.getByRole('link', { name: 'npu-host' })).toBeVisible();
});
