"""multiprocessing by the method named"""
import multiprocessing, sys

def work(n):
    blocks = [bytearray(1000 + n) for _ in range(200)]
    return sum(len(b) for b in blocks)

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    with multiprocessing.Pool(3) as pool:
        print(pool.map(work, range(12)))
    queue = multiprocessing.Queue()
    p = multiprocessing.Process(target=queue.put, args=("from the child",))
    p.start()
    print(queue.get())
    p.join()
    print(p.exitcode)
