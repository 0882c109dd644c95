"""Products of few columns and their transposes, as `narrow_products.py` of rlcore-plugin-compile chooses between them.

    python benchmarks/narrow_products.py

The gradient of a first layer's weights: `[unit, sample] @ [sample, input]`, and the same as `[input, sample] @ [sample,
unit]`. One thread, processor time, the least mean of seven runs. Writes `results/narrow-products.md`.
"""

from __future__ import annotations

import argparse

import torch
from bench import RESULTS, machine
from replay import microseconds


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, nargs="+", default=[120, 256])
    parser.add_argument("--samples", type=int, nargs="+", default=[128, 256])
    parser.add_argument("--inputs", type=int, nargs="+", default=[2, 4, 8, 16, 17, 23, 32])
    parser.add_argument("--calls", type=int, default=300)
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines = ["| units | samples | inputs | as it stands, us | transposed, us | ratio |", "|---|---|---|---|---|---|"]
    with torch.inference_mode():
        for units in args.units:
            for samples in args.samples:
                for inputs in args.inputs:
                    left, right = torch.randn(samples, units), torch.randn(samples, inputs)
                    whole, turned = torch.empty(units, inputs), torch.empty(inputs, units)
                    plain = microseconds(lambda: torch.mm(left.t(), right, out=whole), args.calls)  # noqa: B023
                    other = microseconds(lambda: torch.mm(right.t(), left, out=turned), args.calls)  # noqa: B023
                    row = (units, samples, inputs, f"{plain:.1f}", f"{other:.1f}", f"{plain / other:.2f}")
                    lines.append(f"| {' | '.join(map(str, row))} |")
    path = RESULTS / "narrow-products.md"
    path.write_text("\n".join([f"# Products of few columns\n\n{machine()}.\n", *lines]) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
