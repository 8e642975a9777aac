from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="seg",
    ext_modules=[CUDAExtension("crf", ["crf.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
