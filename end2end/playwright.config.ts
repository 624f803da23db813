import { defineConfig } from '@playwright/test';
import { chromium } from './support/machine.ts';
import { plainHttpHost } from './support/test.ts';

export default defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  timeout: 90_000,
  expect: { timeout: 15_000 },
  forbidOnly: process.env['CI'] !== undefined,
  // each test has a server of its own
  fullyParallel: true,
  workers: 2,
  reporter: [['list']],
  use: {
    locale: 'en-US',
    viewport: { width: 1440, height: 900 },
    actionTimeout: 15_000,
    navigationTimeout: 30_000,
    screenshot: 'only-on-failure',
    trace: 'retain-on-failure',
    launchOptions: {
      executablePath: chromium(),
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        `--host-resolver-rules=MAP ${plainHttpHost} 127.0.0.1`,
      ],
    },
  },
});
