// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// A quantity of Kubernetes, exact, in units of 1e-9.
export interface Quantity {
  nano: bigint;
  // Whether it was written with a suffix such as Gi.
  binary: boolean;
}

const syntax = /^([+-]?)(\d+\.?\d*|\.\d+)(?:([EPTGMk]|[EPTGMK]i|[mun])|[eE]([+-]?\d{1,2}))?$/;
const billion = 1_000_000_000n;
const decimal = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const binary = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

// parse returns null for what is no quantity. Less than 1e-9 counts as that, as in Kubernetes.
export function parse(text: string | undefined): Quantity | null {
  const match = text === undefined ? null : syntax.exec(text);
  if (!match) {
    return null;
  }
  const [, sign, digits = '', suffix = '', exponent] = match;
  const [whole = '', fraction = ''] = digits.split('.');
  let scaled = BigInt(whole + fraction) * billion;
  let divisor = 10n ** BigInt(fraction.length);
  const power = binary.indexOf(suffix);
  if (power > 0) {
    scaled <<= 10n * BigInt(power);
  } else {
    const tens = exponent === undefined ? 3 * (decimal.indexOf(suffix) - 3) : Number(exponent);
    scaled *= 10n ** BigInt(Math.max(tens, 0));
    divisor *= 10n ** BigInt(Math.max(-tens, 0));
  }
  const nano = (scaled + divisor - 1n) / divisor;
  return { nano: sign === '-' ? -nano : nano, binary: power > 0 };
}

// format writes a quantity with the greatest suffix that leaves it whole, as Kubernetes does.
export function format(quantity: Quantity): string {
  const negative = quantity.nano < 0n;
  const nano = negative ? -quantity.nano : quantity.nano;
  return (negative ? '-' : '') + (quantity.binary && nano % billion === 0n ? inBinary(nano / billion) : inDecimal(nano));
}

function inBinary(whole: bigint): string {
  let power = 0;
  let rest = whole;
  while (rest > 0n && power < binary.length - 1 && rest % 1024n === 0n) {
    rest /= 1024n;
    power++;
  }
  return `${rest}${binary[power]}`;
}

function inDecimal(nano: bigint): string {
  let power = 0;
  let rest = nano;
  while (rest > 0n && power < decimal.length - 1 && rest % 1000n === 0n) {
    rest /= 1000n;
    power++;
  }
  return nano === 0n ? '0' : `${rest}${decimal[power]}`;
}

// share is part of whole, for a bar; 0 if the whole is nothing.
export function share(part: bigint, whole: bigint): number {
  return whole <= 0n ? 0 : Number((part * 10_000n) / whole) / 10_000;
}
