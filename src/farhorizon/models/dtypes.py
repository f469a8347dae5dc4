"""The type to compute in."""

import torch

from farhorizon.config.base import DType


def compute_dtype(name: DType, device: torch.device) -> torch.dtype:
    """The type a recipe's `dtype` stands for on a device.

    `auto` is bfloat16 where the hardware multiplies it natively, else float32: a CPU without AVX512-BF16 or AMX
    emulates it several times slower than float32 (`mkldnn_bf16_supported` says yes there all the same).
    """
    if name != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if native else torch.float32
