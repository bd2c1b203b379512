! Some of the loops of kernels.c as a Fortran compiler writes them.
module kernels
  use iso_c_binding
  implicit none

  type, bind(C) :: fields
    type(c_ptr) :: a, b, c, f, index, small, list
  end type

contains

  function kernel_triad(d, n) bind(C) result(value)
    type(fields), intent(in) :: d
    integer(c_long), value :: n
    real(c_double) :: value
    real(c_double), pointer, contiguous :: a(:), b(:), c(:)
    call c_f_pointer(d%a, a, [n])
    call c_f_pointer(d%b, b, [n])
    call c_f_pointer(d%c, c, [n])
    a(1:n) = b(1:n) + 3 * c(1:n)
    value = a(n)
  end function

  function kernel_svdcmp(d, n) bind(C) result(value)
    type(fields), intent(in) :: d
    integer(c_long), value :: n
    integer(c_long) :: k
    real(c_double) :: value, scale
    real(c_double), pointer, contiguous :: a(:), b(:)
    call c_f_pointer(d%a, a, [n])
    call c_f_pointer(d%b, b, [n])
    scale = b(1)
    value = 0
    do k = 1, n
      a(k) = a(k) / scale
      value = value + a(k) * a(k)
    end do
  end function

  function kernel_matrix(d, n) bind(C) result(value)
    type(fields), intent(in) :: d
    integer(c_long), value :: n
    integer(c_long) :: i, j, k
    real(c_double) :: value
    real(c_double), pointer, contiguous :: a(:, :), b(:, :), c(:, :)
    call c_f_pointer(d%a, a, [30, 30])
    call c_f_pointer(d%b, b, [30, 30])
    call c_f_pointer(d%c, c, [30, 30])
    do j = 1, min(n, 30)
      do i = 1, min(n, 30)
        c(i, j) = 0
        do k = 1, 30
          c(i, j) = c(i, j) + a(i, k) * b(k, j)
        end do
      end do
    end do
    value = c(1, 1)
  end function

  function kernel_gather(d, n) bind(C) result(value)
    type(fields), intent(in) :: d
    integer(c_long), value :: n
    integer(c_long) :: k
    real(c_double) :: value
    real(c_double), pointer, contiguous :: a(:)
    integer(c_long), pointer, contiguous :: places(:)
    call c_f_pointer(d%a, a, [1024])
    call c_f_pointer(d%index, places, [1024])
    value = 0
    do k = 1, n
      value = value + a(places(k) + 1)
    end do
  end function
end module
