// Computes on the per-thread default stream, asks for as many bytes as the argument says, and goes on.
#include <cstdio>
#include <cstdlib>

__global__ void triple(double *out) { out[threadIdx.x] = 3.0 * threadIdx.x + 1; }

static double compute() {
    double *place, numbers[256], sum = 0;
    cudaMallocAsync((void **)&place, sizeof numbers, 0);
    triple<<<1, 256>>>(place);
    cudaMemcpyAsync(numbers, place, sizeof numbers, cudaMemcpyDeviceToHost, 0);
    cudaFreeAsync(place, 0);
    if (cudaStreamSynchronize(0) != cudaSuccess) return -1;
    for (double number : numbers) sum += number;
    return sum;
}

int main(int argc, char **argv) {
    size_t past = argc > 1 ? strtoull(argv[1], nullptr, 10) : 0;
    double value = compute();
    void *place;
    cudaError_t error = past ? cudaMallocAsync(&place, past, 0) : cudaSuccess;
    cudaGetLastError();
    printf("{\"values\":[%f],\"stopped\":", value);
    printf(error == cudaSuccess ? "null" : "\"%s\"", cudaGetErrorName(error));
    printf(",\"after\":%f}\n", compute());
}
