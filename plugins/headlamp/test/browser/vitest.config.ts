// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { defineConfig } from 'vitest/config';

// test/headlamp runs this against a real API server.
export default defineConfig({
  test: {
    include: ['test/browser/*.test.ts'],
    globalSetup: 'test/browser/setup.ts',
    testTimeout: 90_000,
    hookTimeout: 90_000,
    // One story: later tests see what earlier ones made.
    fileParallelism: false,
    bail: 0,
  },
});
