"""Peak: how many floating-point operations a second a device can do at most, by its name and the precision.

From the makers' data sheets: dense, boost clock, matrix units with accumulation in fp32, fp32 outside them. A name that
no row knows has no peak: no share of a guess is worth recording.
"""

from __future__ import annotations

import re

_TERA = 1e12
_DEVICES: list[tuple[str, dict[str, float]]] = [
    (r"B200", {"bf16": 2250, "fp16": 2250, "tf32": 1125, "fp32": 75}),
    (r"H(100|200) NVL", {"bf16": 835.5, "fp16": 835.5, "tf32": 417.5, "fp32": 60}),
    (r"H100 PCIe", {"bf16": 756.5, "fp16": 756.5, "tf32": 378, "fp32": 51}),
    (r"GH200|H200|H100", {"bf16": 989.5, "fp16": 989.5, "tf32": 494.5, "fp32": 67}),
    (r"A100", {"bf16": 312, "fp16": 312, "tf32": 156, "fp32": 19.5}),
    (r"A40", {"bf16": 149.7, "fp16": 149.7, "tf32": 74.8, "fp32": 37.4}),
    (r"A30", {"bf16": 165, "fp16": 165, "tf32": 82, "fp32": 10.3}),
    (r"A10G", {"bf16": 70, "fp16": 70, "tf32": 35, "fp32": 31.5}),
    (r"A10", {"bf16": 125, "fp16": 125, "tf32": 62.5, "fp32": 31.2}),
    (r"L40S", {"bf16": 362, "fp16": 362, "tf32": 183, "fp32": 91.6}),
    (r"L40", {"bf16": 181, "fp16": 181, "tf32": 90.5, "fp32": 90.5}),
    (r"L4", {"bf16": 121, "fp16": 121, "tf32": 60, "fp32": 30.3}),
    (r"V100S", {"fp16": 130, "fp32": 16.4}),
    (r"V100.PCIE", {"fp16": 112, "fp32": 14}),
    (r"V100", {"fp16": 125, "fp32": 15.7}),
    (r"T4", {"fp16": 65, "fp32": 8.1}),
    (r"MI300X", {"bf16": 1307.4, "fp16": 1307.4, "tf32": 653.7, "fp32": 163.4}),
]
"""Tera-operations a second; the first row whose words are in the name."""
_PRECISIONS = {"amp_bf16": "bf16", "amp_fp16": "fp16", "fp32": "fp32"}


def peak_flops_per_s(device_name: str, precision: str, *, tf32: bool = False) -> float | None:
    """The most that one device can do, None where that is unknown.

    `precision`: fp32, amp_bf16 or amp_fp16; `tf32`: whether fp32 products may use the TF32 units.
    """
    kind = "tf32" if precision == "fp32" and tf32 else _PRECISIONS.get(precision, "")
    for words, peaks in _DEVICES:
        if re.search(rf"(?<![A-Za-z0-9])({words})(?![A-Za-z0-9])", device_name):
            tera = peaks.get(kind, peaks["fp32"] if kind == "tf32" else None)  # older devices have no such units
            return None if tera is None else tera * _TERA
    return None
