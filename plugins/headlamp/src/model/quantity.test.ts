// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { describe, expect, it } from 'vitest';
import { format, parse, share } from './quantity';

describe('a quantity', () => {
  it.each([
    ['8', 8_000_000_000n],
    ['7400m', 7_400_000_000n],
    ['1.5', 1_500_000_000n],
    ['.5', 500_000_000n],
    ['1Ki', 1_024_000_000_000n],
    ['1e3', 1_000_000_000_000n],
    ['1E-2', 10_000_000n],
    ['2E', 2n * 10n ** 27n],
    ['-100m', -100_000_000n],
    ['1n', 1n],
    ['0.1n', 1n],
  ])('%s is read', (text, nano) => {
    expect(parse(text)?.nano).toBe(nano);
  });

  it.each(['', '?', 'a', '1 Gi', '1K', '--1', '1e999'])('%j is none', text => {
    expect(parse(text)).toBeNull();
  });

  it.each(['0', '8', '600m', '10k', '11Gi', '1536Mi', '1n', '-2', '1500', '1E', '1Ei'])('%s is written as it is read', text => {
    const quantity = parse(text);
    expect(quantity && format(quantity)).toBe(text);
  });

  it('is a share of nothing: none', () => {
    expect(share(3n, 0n)).toBe(0);
    expect(share(1n, 4n)).toBe(0.25);
  });
});
