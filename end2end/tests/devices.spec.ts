import { Api, until } from '../support/api.ts';
import { bannerLine, card, expectState } from '../support/fleet-page.ts';
import { childrenOf } from '../support/program.ts';
import { expect, logIn, test } from '../support/test.ts';

test('a tool that hangs is told, its last readings are marked as old, and the worker stays Ready', async ({ page, lab }) => {
  test.setTimeout(240_000);
  const server = await lab.server({ args: ['--worker-offline-timeout', '30'] });
  const api = await Api.logIn(server);
  const worker = await lab.worker(server, { name: 'npu-host' });
  await logIn(page, server.url);
  await expect(card(page, 'npu-host')).toContainText('8 × 910B3', { timeout: 45_000 });

  await worker.setNpuSmi('hang');
  await expect(card(page, 'npu-host')).toContainText(/\d+ s old/, { timeout: 90_000 });
  await expectState(card(page, 'npu-host'), 'ready');
  const heardAt = (await api.worker('npu-host'))?.heartbeat_time;
  await until('the heartbeat goes on', async () => {
    expect((await childrenOf(worker.program.pid)).length).toBeLessThanOrEqual(1);
    const now = (await api.worker('npu-host'))?.heartbeat_time;
    return now !== heardAt ? true : undefined;
  });

  await worker.setNpuSmi('normal');
  await expect(card(page, 'npu-host')).not.toContainText(/\d+ s old/, { timeout: 90_000 });
  await worker.program.stop();
});

test('a sick device is named', async ({ page, lab }) => {
  const server = await lab.server();
  await lab.worker(server, { name: 'npu-host', npuSmi: 'unhealthy' });
  await logIn(page, server.url);
  await expect(card(page, 'npu-host')).toContainText('8 × 910B3', { timeout: 45_000 });
  await expect(bannerLine(page, 'npu-host')).toContainText('Device 3 (910B3) reports its health as Alarm.');
  await expectState(card(page, 'npu-host'), 'ready');
});
