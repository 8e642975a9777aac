"""Drop-in for Ascend's ms_fmk_transplt."""
